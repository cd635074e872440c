//! Tests of requests that are refused before a process exists, and of refusals by the system.

use algonius_actors::model::code::Code;
use algonius_actors::model::program::{InputPattern, OutputPattern};
use algonius_actors::report::Report;

use super::world::{Entry, Stage, program, shell};

fn told(args: &[&str], input: &str) -> Stage {
    let mut stage = program("/bin/echo", args).says(input);
    stage.program.input = InputPattern::Args;
    stage
}

/// Returns the code of the refusal, and asserts that no process started for it.
async fn refusal(stage: &Stage) -> Option<Code> {
    let story = stage.play().await;
    let started =
        story.seen.iter().any(|entry| matches!(entry, Entry::Report(Report::Started { .. })));
    assert_eq!(started, story.verdict.is_ok());
    story.code()
}

#[tokio::test(flavor = "multi_thread")]
async fn unsafe_or_long_command_lines_are_refused() {
    let no = Some(Code::InputRejected);
    let long = "x".repeat(131_071);
    let longer = format!("{long}x");
    let many = ["{{ input }}"; 13];
    for (case, args, input, expected) in [
        ("zero byte", &["{{ input }}"][..], "a\0b", no),
        ("longest", &["{{ input }}"], &long, None),
        ("too long", &["{{ input }}"], &longer, no),
        ("together too long", &many, &long, no),
        ("option", &["{{ input }}"], "--help", no),
        ("option behind another argument", &["-n", "{{input}}"], "-e", no),
        ("option of a filter", &["{{ input | trim }}"], "  -e", no),
        ("guarded option", &["--", "{{ input }}"], "-e", None),
        ("joined option", &["--text={{ input }}"], "-e", None),
        ("a guard behind it is none", &["{{ input }}", "--"], "-e", no),
        ("no such parameter", &["{{ param.x }}"], "", no),
    ] {
        assert_eq!(refusal(&told(args, input)).await, expected, "{case}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn options_come_from_the_configuration_only() {
    let mut stage = told(&["{{ param.flag }}"], "");
    stage.program.params.insert("flag".to_owned(), "-n".to_owned());
    assert_eq!(refusal(&stage).await, None);
    stage.input.params.insert("flag".to_owned(), "-e".to_owned());
    assert_eq!(refusal(&stage).await, Some(Code::InputRejected));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_id_with_a_zero_byte_is_refused() {
    let mut stage = program("/bin/true", &[]);
    stage.context = "a\0b".to_owned();
    assert_eq!(refusal(&stage).await, Some(Code::InputRejected));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_name_must_stay_in_its_folder() {
    for name in ["../{{ attempt }}", "{{ input }}", "", "..", "a/b"] {
        let mut stage = shell("true", &[]).says("/etc/passwd");
        (stage.program.output, stage.program.output_file) = (OutputPattern::File, name.to_owned());
        assert_eq!(refusal(&stage).await, Some(Code::InputRejected), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_start_is_one_permanent_failure() {
    let missing = program("/nowhere/agent", &[]).play().await.verdict.unwrap_err();
    assert_eq!(missing.code, Code::AgentUnavailable);
    assert!(missing.message.ends_with("its program `agent` is not installed"), "{missing:?}");
    let closed = program("/etc/passwd", &[]).play().await.verdict.unwrap_err();
    assert_eq!(closed.message, "the program may not be executed");
    let mut homeless = program("/bin/true", &[]);
    homeless.program.working_dir = "/nowhere".into();
    assert_eq!(homeless.play().await.code(), Some(Code::NotStarted));
}
