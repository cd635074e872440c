//! Tests of the events of a program and their effects.

mod limits;

use std::fs;

use algonius_actors::driver::report::Report;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::Interruption;
use algonius_actors::model::execution::content::{PartKind, StoredPart};
use algonius_actors::model::execution::event::{EventKind, MessageRole, TextChannel};
use algonius_actors::model::program::OutputMethod;

use super::fixture::{AttemptRecord, ProgramFixture, RecordedEntry, shell_fixture};

/// Parts as they are stored.
type PartTexts = Vec<(PartKind, String)>;

/// Program that prints these lines as its events, and must have output.
fn event_program(lines: &str) -> ProgramFixture {
    event_script_program("cat", &[]).with_input(lines)
}

pub(super) fn event_script_program(script: &str, args: &[&str]) -> ProgramFixture {
    let mut fixture = shell_fixture(script, args);
    (fixture.program.output_method, fixture.program.success_criteria.require_output) =
        (OutputMethod::Events, true);
    fixture
}

fn text_of(record: &AttemptRecord, part: &StoredPart) -> String {
    let index = |at| usize::try_from(at).unwrap();
    let range = index(part.text.from)..index(part.text.to);
    record.text(part.text.channel).get(range).unwrap().to_owned()
}

fn part_texts(record: &AttemptRecord, parts: &[StoredPart]) -> PartTexts {
    parts.iter().map(|piece| (piece.kind, text_of(record, piece))).collect()
}

/// Returns the messages: their role, their id and their texts.
fn messages(record: &AttemptRecord) -> Vec<(MessageRole, String, PartTexts)> {
    let messages = record.events().into_iter().filter_map(|event| match event {
        EventKind::Message { speaker, message, pieces, .. } => {
            Some((*speaker, message.clone(), part_texts(record, pieces)))
        }
        _ => None,
    });
    messages.collect()
}

/// Returns the artifacts: id, texts, `append` and `last`.
fn artifacts(record: &AttemptRecord) -> Vec<(String, PartTexts, bool, bool)> {
    let artifacts = record.events().into_iter().filter_map(|event| match event {
        EventKind::Artifact { id, pieces, append, last, .. } => {
            Some((id.clone(), part_texts(record, pieces), *append, *last))
        }
        _ => None,
    });
    artifacts.collect()
}

fn input_required_exit_code(record: &AttemptRecord) -> Option<i32> {
    match record.entries.last() {
        Some(RecordedEntry::Report(Report::InputRequired { exit_code, .. })) => *exit_code,
        _ => None,
    }
}

fn has_warning(record: &AttemptRecord) -> bool {
    record.events().into_iter().any(|event| matches!(event, EventKind::Warning { .. }))
}

fn text_part(text: &str) -> (PartKind, String) {
    (PartKind::Text, text.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_the_answer_is_visible_while_the_program_runs() {
    let script = r#"printf '%s\n' '{"type":"text","text":"one\ntw"}'
        until [ -e go ]; do sleep 0.01; done
        echo '{"type":"text","text":"o"}'"#;
    let fixture = event_script_program(script, &[]);
    let mut attempt = fixture.start().await;
    while !matches!(attempt.next_entry().await, RecordedEntry::Event(EventKind::Artifact { .. })) {}
    fs::write(fixture.home.path().join("go"), "").unwrap();
    assert_eq!(attempt.wait_for_end().await, Ok(()));
    attempt.clean_up().await;
    let record = AttemptRecord { result: Ok(()), entries: attempt.entries };
    let artifact_update =
        |words: &str, append, last| ("answer".to_owned(), vec![text_part(words)], append, last);
    assert_eq!(
        artifacts(&record),
        [artifact_update("one\n", false, false), artifact_update("two", true, true)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_split_over_two_events_is_masked() {
    let lines = r#"{"type":"text","text":"see\nit is correct-hor"}
        {"type":"text","text":"se-battery, yes\n"}"#;
    let mut fixture = event_program(lines);
    fixture.secrets = vec!["correct-horse-battery".to_owned()];
    let record = fixture.run_to_end().await;
    let output: String = artifacts(&record)
        .into_iter()
        .flat_map(|artifact| artifact.1)
        .map(|piece| piece.1)
        .collect();
    assert_eq!(output, record.text(TextChannel::Answer));
    assert!(output.starts_with("see\nit is ") && output.ends_with(", yes\n"), "{output}");
    assert!(!output.contains("correct") && !output.contains("battery"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_recorded_with_their_roles() {
    let lines = r#"{"type":"status","text":"on it"}
        {"type":"status","state":"completed","parts":[{"text":"done"},{"data":{"n":[1]}}]}
        {"type":"message","url":"https://example.com/a"}"#;
    let fixture = event_program(lines);
    let record = fixture.run_to_end().await;
    let id = |number| format!("{}-1-1-{number}", fixture.execution);
    let expected = [
        (MessageRole::AgentProgress, id(1), vec![text_part("on it")]),
        (
            MessageRole::AgentOutcome,
            id(2),
            vec![text_part("done"), (PartKind::Data, r#"{"n":[1]}"#.to_owned())],
        ),
        (
            MessageRole::AgentAnswer,
            id(3),
            vec![(PartKind::Url, "https://example.com/a".to_owned())],
        ),
    ];
    assert_eq!((record.failure_code(), messages(&record)), (None, expected.to_vec()));
    assert_eq!((artifacts(&record), has_warning(&record)), (vec![], false));
}

#[tokio::test(flavor = "multi_thread")]
async fn artifacts_are_created_and_appended() {
    let lines = r#"{"type":"artifact","file":{"name":"a.txt","media_type":"text/plain","text":"hi"}}
        {"type":"artifact","id":"log","text":"a\n","last":false}
        {"type":"artifact","text":"b","append":true}
        {"type":"artifact","data":[true]}"#;
    let record = event_program(lines).run_to_end().await;
    let artifact_update = |id: &str, kind, text: &str, append, last| {
        (id.to_owned(), vec![(kind, text.to_owned())], append, last)
    };
    let expected = [
        artifact_update("artifact-1", PartKind::Bytes, "aGk=", false, true),
        artifact_update("log", PartKind::Text, "a\n", false, false),
        artifact_update("log", PartKind::Text, "b", true, true),
        artifact_update("artifact-2", PartKind::Data, "[true]", false, true),
    ];
    assert_eq!((record.failure_code(), artifacts(&record)), (None, expected.to_vec()));
    let has_filename = record.events().into_iter().any(|event| match event {
        EventKind::Artifact { pieces, .. } => pieces[0].filename.as_deref() == Some("a.txt"),
        _ => false,
    });
    assert!(has_filename);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_split_across_two_artifact_events_is_masked() {
    let lines = r#"{"type":"artifact","id":"log","text":"see\nit is correct-hor","last":false}
        {"type":"status","text":"half way"}
        {"type":"artifact","id":"log","text":"se-battery, yes","append":true}"#;
    let mut fixture = event_program(lines);
    fixture.secrets = vec!["correct-horse-battery".to_owned()];
    let record = fixture.run_to_end().await;
    let artifact_update =
        |words: &str, append, last| ("log".to_owned(), vec![text_part(words)], append, last);
    let rest = artifacts(&record)[1].1[0].1.clone();
    assert_eq!(
        artifacts(&record),
        [artifact_update("see\n", false, false), artifact_update(&rest, true, true)]
    );
    assert!(rest.starts_with("it is ") && rest.ends_with(", yes"), "{rest}");
    let stored = record.text(TextChannel::Parts);
    assert!(!stored.contains("correct") && !stored.contains("battery"), "{stored}");
}

#[tokio::test(flavor = "multi_thread")]
async fn held_back_artifact_text_is_reported_after_a_kill() {
    let script = r#"trap "" TERM
        printf '%s\n' '{"type":"artifact","id":"log","text":"one\ntwo","last":false}'
        while :; do sleep 600; done"#;
    let fixture = event_script_program(script, &[]);
    let mut attempt = fixture.start().await;
    while !matches!(attempt.next_entry().await, RecordedEntry::Event(EventKind::Artifact { .. })) {}
    attempt.stop();
    let result = attempt.wait_for_end().await;
    attempt.clean_up().await;
    let record = AttemptRecord { result, entries: attempt.entries };
    let artifact_update =
        |words: &str, append, last| ("log".to_owned(), vec![text_part(words)], append, last);
    assert_eq!(record.failure_code(), Some(Code::Killed));
    assert_eq!(
        artifacts(&record),
        [artifact_update("one\n", false, false), artifact_update("two", true, true)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_ends_the_attempt_unless_the_program_fails() {
    let question = r#"{"type":"input_required","text":"which one?"}"#;
    let record = event_program(question).run_to_end().await;
    assert_eq!((record.failure_code(), input_required_exit_code(&record)), (None, Some(0)));
    assert_eq!(messages(&record)[0].0, MessageRole::AgentQuestion);
    assert_eq!(messages(&record)[0].2, [text_part("which one?")]);
    let record = event_script_program("cat; exit 3", &[]).with_input(question).run_to_end().await;
    assert_eq!(
        (record.failure_code(), input_required_exit_code(&record)),
        (Some(Code::Exit), None)
    );
    let record = event_program(&format!("{question}\n{{\"type\":\"failed\"}}")).run_to_end().await;
    assert_eq!(
        (record.failure_code(), input_required_exit_code(&record)),
        (Some(Code::Reported), None)
    );
    let record = event_program(r#"{"type":"input_required"}"#).run_to_end().await;
    assert_eq!((input_required_exit_code(&record), messages(&record).len()), (Some(0), 0));
}

/// Returns the reported input that the program needs from its caller.
fn required_input(record: &AttemptRecord) -> Option<Interruption> {
    match record.entries.last() {
        Some(RecordedEntry::Report(Report::InputRequired { required_input, .. })) => {
            Some(*required_input)
        }
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authentication_request_names_its_page() {
    use Interruption::{AuthRequired, InputRequired};
    let page = || (PartKind::Url, "https://example.org".to_owned());
    for (fields, expected_texts) in [
        (r#","text":"sign in""#, vec![vec![text_part("sign in")]]),
        (r#","url":"https://example.org""#, vec![vec![page()]]),
        (
            r#","text":"sign in","url":"https://example.org""#,
            vec![vec![text_part("sign in"), page()]],
        ),
        ("", Vec::new()),
    ] {
        let record =
            event_program(&format!(r#"{{"type":"auth_required"{fields}}}"#)).run_to_end().await;
        assert_eq!(required_input(&record), Some(AuthRequired), "{fields}");
        let received: Vec<_> =
            messages(&record).into_iter().map(|(by, _, words)| (by, words)).collect();
        let expected_messages: Vec<_> =
            expected_texts.into_iter().map(|words| (MessageRole::AgentQuestion, words)).collect();
        assert_eq!((received, has_warning(&record)), (expected_messages, false), "{fields}");
    }
    let (auth, input) = (r#"{"type":"auth_required"}"#, r#"{"type":"input_required","text":"x"}"#);
    let record = event_program(&format!("{auth}\n{input}")).run_to_end().await;
    assert_eq!(required_input(&record), Some(InputRequired), "the last word counts");
    let record = event_program(&format!("{auth}\n{{\"type\":\"failed\"}}")).run_to_end().await;
    assert_eq!((record.failure_code(), required_input(&record)), (Some(Code::Reported), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_is_reported_as_the_agent_states_it() {
    for (message, sentence) in
        [("not\\nmine", "the agent rejected it: not mine"), ("", "the agent rejected it")]
    {
        let line = format!(r#"{{"type":"rejected","message":"{message}"}}"#);
        let failure = event_program(&line).run_to_end().await.result.unwrap_err();
        assert_eq!((failure.code, failure.message.as_str()), (Code::Rejected, sentence));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_and_sessions_are_recorded_without_secrets() {
    let lines = r#"{"type":"usage","input_tokens":7,"cost":0.5,"model":"m"}
        {"type":"session","id":"correct-horse-battery"}
        {"type":"text","text":"x"}"#;
    let mut fixture = event_program(lines);
    fixture.secrets = vec!["correct-horse-battery".to_owned()];
    let record = fixture.run_to_end().await;
    let numbers = [("cost".to_owned(), serde_json::Number::from_f64(0.5).unwrap())]
        .into_iter()
        .chain([("input_tokens".to_owned(), 7.into())]);
    assert!(
        record.events().contains(&&EventKind::UsageReported {
            counters: numbers.collect(),
            cumulative: false
        })
    );
    let session = record.events().into_iter().find_map(|event| match event {
        EventKind::Session { id } => Some(id.clone()),
        _ => None,
    });
    assert!(!session.unwrap().contains("correct"));
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_no_output_and_malformed_events_are_warned_of() {
    let record = event_program(r#"{"type":"status","text":"on it"}"#).run_to_end().await;
    assert_eq!((record.failure_code(), has_warning(&record)), (Some(Code::EmptyAnswer), false));
    for malformed in [
        r#"{"type":"artifact"}"#,
        r#"{"type":"message","parts":[]}"#,
        r#"{"type":"artifact","file":{"bytes":"?"}}"#,
        r#"{"type":"status","state":"completed","parts":[{"text":1}]}"#,
    ] {
        let record = event_program(malformed).run_to_end().await;
        assert_eq!(
            (record.failure_code(), has_warning(&record)),
            (Some(Code::OutputUnreadable), true),
            "{malformed}"
        );
    }
}
