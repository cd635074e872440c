//! What an agent has to be, and what its failures mean.

use algonius_actors::model::contract::{FailureContract, SuccessContract};
use algonius_actors::model::program::Dialect;

use super::*;

fn contracts(lines: &str) -> (SuccessContract, FailureContract) {
    let program = settings(&format!("{CAT}{lines}\n")).agents.remove(0).program;
    (program.success.clone(), program.failures.clone())
}

#[test]
fn short_forms_say_what_the_whole_ones_say() {
    let short = contracts("transient_exit_codes = [3]\ntransient_regex = \"busy\"").1;
    let whole = contracts("failures.transient = { exit_codes = [3], regex = \"busy\" }").1;
    assert_eq!(short, whole);
    let usual = contracts("failures.transient.status = [503]").1.transient;
    assert_eq!((usual.status, usual.exit_codes), (vec![503], vec![75]));
    let quota = contracts("failures.quota = { status = [429], regex = \"used up\" }").1.quota;
    assert!(quota.regex.is_some_and(|regex| regex.is_match("all used up")));
    check_agent(&[
        (
            "transient_regex = \"a\"\nfailures.transient.regex = \"b\"",
            &[
                "c:3:19: error: agents.a.transient_regex: says what `failures.transient.regex` says; write one of them",
            ],
        ),
        (
            "failures.transient.status = [401]",
            &[
                "c:3:30: error: agents.a.failures.transient.status[0] = 401: means that credentials were refused, which is never tried again; leave it out",
            ],
        ),
        (
            "failures.permanent.status = [200]",
            &[
                "c:3:30: error: agents.a.failures.permanent.status[0] = 200: must be an HTTP status from 400 to 599",
            ],
        ),
    ]);
}

#[test]
fn more_may_be_asked_of_a_success() {
    let lines = r#"success = { artifact = "out/a.md", schema = '{"type": "object"}', check = ["sh", "-c", "true"], check_timeout = 5 }"#;
    let success = contracts(lines).0;
    assert_eq!(success.artifact.as_deref(), Some("out/a.md"));
    assert_eq!(success.schema, Some(serde_json::json!({"type": "object"})));
    let check = success.check.unwrap();
    assert!(check.command.is_absolute());
    assert_eq!(
        (check.args, check.limit),
        (vec!["-c".to_owned(), "true".to_owned()], Duration::from_secs(5))
    );
    check_agent(&[(
        "success.check = []",
        &[
            "c:3:17: error: agents.a.success.check: must name a command, and may give its arguments after it",
        ],
    )]);
}

#[test]
fn known_programs_are_named_by_what_they_write() {
    for (word, dialect) in [
        ("claude-stream-json", Dialect::Claude),
        ("codex-jsonl", Dialect::Codex),
        ("gemini-stream-json", Dialect::Gemini),
        ("copilot-jsonl", Dialect::Copilot),
        ("opencode-jsonl", Dialect::Opencode),
    ] {
        let agent = settings(&format!("{CAT}output = \"{word}\"\n")).agents.remove(0);
        assert_eq!(agent.program.output, OutputPattern::Native(dialect), "{word}");
    }
}
