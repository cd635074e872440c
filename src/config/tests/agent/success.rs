//! Tests of success conditions, and of the meaning of failures.

use algonius_actors::model::agent::success_criteria::{FailureRules, SuccessCriteria};
use algonius_actors::model::program::EventDialect;

use super::*;

fn criteria_and_rules(lines: &str) -> (SuccessCriteria, FailureRules) {
    let program =
        load_settings(&format!("{CAT}{lines}\n")).agents.remove(0).program().unwrap().clone();
    (program.success_criteria.clone(), program.failure_rules.clone())
}

#[test]
fn short_forms_equal_the_full_forms() {
    let short = criteria_and_rules("transient_exit_codes = [3]\ntransient_regex = \"busy\"").1;
    let full = criteria_and_rules("failures.transient = { exit_codes = [3], regex = \"busy\" }").1;
    assert_eq!(short, full);
    let matchers = criteria_and_rules("failures.transient.status = [503]").1.transient;
    assert_eq!((matchers.http_statuses, matchers.exit_codes), (vec![503], vec![75]));
    let quota =
        criteria_and_rules("failures.quota = { status = [429], regex = \"used up\" }").1.quota;
    assert!(quota.regex.is_some_and(|regex| regex.is_match("all used up")));
    let own_retries = "failures.own_retries = { regex = \"^again\", max = 5 }";
    let own_retries = criteria_and_rules(own_retries).1.program_retry_rules;
    assert!(
        own_retries.failed_request_regex.is_some_and(|regex| regex.is_match("again in 2 s"))
            && own_retries.max_failed_requests == Some(5)
    );
    assert_eq!(criteria_and_rules("").1.program_retry_rules.max_failed_requests, None);
    assert_agent_faults(&[
        (
            "failures.own_retries.max = 1001",
            &["c:3:28: error: agents.a.failures.own_retries.max = 1001: must be 0 to 1000"],
        ),
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
fn success_can_require_an_artifact_a_schema_and_a_check() {
    let lines = r#"success = { artifact = "out/a.md", schema = '{"type": "object"}', check = ["sh", "-c", "true"], check_timeout = 5 }"#;
    let success = criteria_and_rules(lines).0;
    assert_eq!(success.artifact_path.as_deref(), Some("out/a.md"));
    assert_eq!(success.answer_schema, Some(serde_json::json!({"type": "object"})));
    let check = success.check.unwrap();
    assert!(check.command.is_absolute());
    assert_eq!(
        (check.args, check.timeout),
        (vec!["-c".to_owned(), "true".to_owned()], Duration::from_secs(5))
    );
    assert_agent_faults(&[(
        "success.check = []",
        &[
            "c:3:17: error: agents.a.success.check: must name a command, and may give its arguments after it",
        ],
    )]);
}

#[test]
fn native_event_formats_are_named_by_their_program() {
    for (word, dialect) in [
        ("claude-stream-json", EventDialect::Claude),
        ("codex-jsonl", EventDialect::Codex),
        ("gemini-stream-json", EventDialect::Gemini),
        ("copilot-jsonl", EventDialect::Copilot),
        ("opencode-jsonl", EventDialect::Opencode),
    ] {
        let agent = load_settings(&format!("{CAT}output = \"{word}\"\n")).agents.remove(0);
        assert_eq!(agent.program().unwrap().output_method, OutputMethod::Native(dialect), "{word}");
    }
}
