//! Tests of the events of a program and their effects.

use std::fs;

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::Interruption;
use algonius_actors::model::execution::content::{PartKind, Piece};
use algonius_actors::model::execution::event::{EventKind, MessageRole, TextChannel};
use algonius_actors::model::program::OutputPattern;
use algonius_actors::report::Report;

use super::world::{Entry, Stage, Story, shell};

/// Parts as they are stored.
type Texts = Vec<(PartKind, String)>;

/// Program that prints these lines as its events, and must have output.
fn telling(lines: &str) -> Stage {
    running("cat", &[]).says(lines)
}

fn running(script: &str, args: &[&str]) -> Stage {
    let mut stage = shell(script, args);
    (stage.program.output, stage.program.success.require_output) = (OutputPattern::Events, true);
    stage
}

fn text_of(story: &Story, piece: &Piece) -> String {
    let place = |at| usize::try_from(at).unwrap();
    let range = place(piece.text.from)..place(piece.text.to);
    story.text(piece.text.channel).get(range).unwrap().to_owned()
}

fn texts(story: &Story, pieces: &[Piece]) -> Texts {
    pieces.iter().map(|piece| (piece.kind, text_of(story, piece))).collect()
}

/// Returns the messages: their role, their id and their texts.
fn said(story: &Story) -> Vec<(MessageRole, String, Texts)> {
    let said = story.facts().into_iter().filter_map(|fact| match fact {
        EventKind::Message { speaker, message, pieces } => {
            Some((*speaker, message.clone(), texts(story, pieces)))
        }
        _ => None,
    });
    said.collect()
}

/// Returns the artifacts: id, texts, `append` and `last`.
fn made(story: &Story) -> Vec<(String, Texts, bool, bool)> {
    let made = story.facts().into_iter().filter_map(|fact| match fact {
        EventKind::Artifact { id, pieces, append, last, .. } => {
            Some((id.clone(), texts(story, pieces), *append, *last))
        }
        _ => None,
    });
    made.collect()
}

fn asked(story: &Story) -> Option<i32> {
    match story.seen.last() {
        Some(Entry::Report(Report::Asked { exit_code, .. })) => *exit_code,
        _ => None,
    }
}

fn warned(story: &Story) -> bool {
    story.facts().into_iter().any(|fact| matches!(fact, EventKind::Warning { .. }))
}

fn text(text: &str) -> (PartKind, String) {
    (PartKind::Text, text.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_the_answer_is_visible_while_the_program_runs() {
    let script = r#"printf '%s\n' '{"type":"text","text":"one\ntw"}'
        until [ -e go ]; do sleep 0.01; done
        echo '{"type":"text","text":"o"}'"#;
    let stage = running(script, &[]);
    let mut run = stage.start().await;
    while !matches!(run.next().await, Entry::Fact(EventKind::Artifact { .. })) {}
    fs::write(stage.home.path().join("go"), "").unwrap();
    assert_eq!(run.ended().await, Ok(()));
    run.clean().await;
    let story = Story { verdict: Ok(()), seen: run.seen };
    let piece = |words: &str, append, last| ("answer".to_owned(), vec![text(words)], append, last);
    assert_eq!(made(&story), [piece("one\n", false, false), piece("two", true, true)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_split_over_two_events_is_masked() {
    let lines = r#"{"type":"text","text":"see\nit is correct-hor"}
        {"type":"text","text":"se-battery, yes\n"}"#;
    let mut stage = telling(lines);
    stage.secrets = vec!["correct-horse-battery".to_owned()];
    let story = stage.play().await;
    let shown: String =
        made(&story).into_iter().flat_map(|made| made.1).map(|piece| piece.1).collect();
    assert_eq!(shown, story.text(TextChannel::Answer));
    assert!(shown.starts_with("see\nit is ") && shown.ends_with(", yes\n"), "{shown}");
    assert!(!shown.contains("correct") && !shown.contains("battery"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_recorded_with_their_roles() {
    let lines = r#"{"type":"status","text":"on it"}
        {"type":"status","state":"completed","parts":[{"text":"done"},{"data":{"n":[1]}}]}
        {"type":"message","url":"https://example.com/a"}"#;
    let stage = telling(lines);
    let story = stage.play().await;
    let id = |number| format!("{}-1-1-{number}", stage.execution);
    let expected = [
        (MessageRole::AgentProgress, id(1), vec![text("on it")]),
        (
            MessageRole::AgentOutcome,
            id(2),
            vec![text("done"), (PartKind::Data, r#"{"n":[1]}"#.to_owned())],
        ),
        (
            MessageRole::AgentAnswer,
            id(3),
            vec![(PartKind::Url, "https://example.com/a".to_owned())],
        ),
    ];
    assert_eq!((story.code(), said(&story)), (None, expected.to_vec()));
    assert_eq!((made(&story), warned(&story)), (vec![], false));
}

#[tokio::test(flavor = "multi_thread")]
async fn artifacts_are_created_and_appended() {
    let lines = r#"{"type":"artifact","file":{"name":"a.txt","media_type":"text/plain","text":"hi"}}
        {"type":"artifact","id":"log","text":"a\n","last":false}
        {"type":"artifact","text":"b","append":true}
        {"type":"artifact","data":[true]}"#;
    let story = telling(lines).play().await;
    let piece = |id: &str, of, text: &str, append, last| {
        (id.to_owned(), vec![(of, text.to_owned())], append, last)
    };
    let expected = [
        piece("artifact-1", PartKind::Bytes, "aGk=", false, true),
        piece("log", PartKind::Text, "a\n", false, false),
        piece("log", PartKind::Text, "b", true, true),
        piece("artifact-2", PartKind::Data, "[true]", false, true),
    ];
    assert_eq!((story.code(), made(&story)), (None, expected.to_vec()));
    let named = story.facts().into_iter().any(|fact| match fact {
        EventKind::Artifact { pieces, .. } => pieces[0].filename.as_deref() == Some("a.txt"),
        _ => false,
    });
    assert!(named);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_split_across_two_artifact_events_is_masked() {
    let lines = r#"{"type":"artifact","id":"log","text":"see\nit is correct-hor","last":false}
        {"type":"status","text":"half way"}
        {"type":"artifact","id":"log","text":"se-battery, yes","append":true}"#;
    let mut stage = telling(lines);
    stage.secrets = vec!["correct-horse-battery".to_owned()];
    let story = stage.play().await;
    let piece = |words: &str, append, last| ("log".to_owned(), vec![text(words)], append, last);
    let rest = made(&story)[1].1[0].1.clone();
    assert_eq!(made(&story), [piece("see\n", false, false), piece(&rest, true, true)]);
    assert!(rest.starts_with("it is ") && rest.ends_with(", yes"), "{rest}");
    let kept = story.text(TextChannel::Parts);
    assert!(!kept.contains("correct") && !kept.contains("battery"), "{kept}");
}

#[tokio::test(flavor = "multi_thread")]
async fn held_back_artifact_text_is_reported_after_a_kill() {
    let script = r#"trap "" TERM
        printf '%s\n' '{"type":"artifact","id":"log","text":"one\ntwo","last":false}'
        while :; do sleep 600; done"#;
    let stage = running(script, &[]);
    let mut run = stage.start().await;
    while !matches!(run.next().await, Entry::Fact(EventKind::Artifact { .. })) {}
    run.stop();
    let verdict = run.ended().await;
    run.clean().await;
    let story = Story { verdict, seen: run.seen };
    let piece = |words: &str, append, last| ("log".to_owned(), vec![text(words)], append, last);
    assert_eq!(story.code(), Some(Code::Killed));
    assert_eq!(made(&story), [piece("one\n", false, false), piece("two", true, true)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_ends_the_attempt_unless_the_program_fails() {
    let question = r#"{"type":"input_required","text":"which one?"}"#;
    let story = telling(question).play().await;
    assert_eq!((story.code(), asked(&story)), (None, Some(0)));
    assert_eq!(said(&story)[0].0, MessageRole::AgentQuestion);
    assert_eq!(said(&story)[0].2, [text("which one?")]);
    let story = running("cat; exit 3", &[]).says(question).play().await;
    assert_eq!((story.code(), asked(&story)), (Some(Code::Exit), None));
    let story = telling(&format!("{question}\n{{\"type\":\"failed\"}}")).play().await;
    assert_eq!((story.code(), asked(&story)), (Some(Code::Reported), None));
    let story = telling(r#"{"type":"input_required"}"#).play().await;
    assert_eq!((asked(&story), said(&story).len()), (Some(0), 0));
}

/// Returns the reported input that the program needs from its caller.
fn interruption(story: &Story) -> Option<Interruption> {
    match story.seen.last() {
        Some(Entry::Report(Report::Asked { interruption, .. })) => Some(*interruption),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authentication_request_names_its_page() {
    use Interruption::{AuthRequired, InputRequired};
    let page = || (PartKind::Url, "https://example.org".to_owned());
    for (fields, words) in [
        (r#","text":"sign in""#, vec![vec![text("sign in")]]),
        (r#","url":"https://example.org""#, vec![vec![page()]]),
        (r#","text":"sign in","url":"https://example.org""#, vec![vec![text("sign in"), page()]]),
        ("", Vec::new()),
    ] {
        let story = telling(&format!(r#"{{"type":"auth_required"{fields}}}"#)).play().await;
        assert_eq!(interruption(&story), Some(AuthRequired), "{fields}");
        let said: Vec<_> = said(&story).into_iter().map(|(by, _, words)| (by, words)).collect();
        let words: Vec<_> =
            words.into_iter().map(|words| (MessageRole::AgentQuestion, words)).collect();
        assert_eq!((said, warned(&story)), (words, false), "{fields}");
    }
    let (auth, input) = (r#"{"type":"auth_required"}"#, r#"{"type":"input_required","text":"x"}"#);
    let story = telling(&format!("{auth}\n{input}")).play().await;
    assert_eq!(interruption(&story), Some(InputRequired), "the last word counts");
    let story = telling(&format!("{auth}\n{{\"type\":\"failed\"}}")).play().await;
    assert_eq!((story.code(), interruption(&story)), (Some(Code::Reported), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_is_reported_as_the_agent_states_it() {
    for (message, sentence) in
        [("not\\nmine", "the agent rejected it: not mine"), ("", "the agent rejected it")]
    {
        let line = format!(r#"{{"type":"rejected","message":"{message}"}}"#);
        let failure = telling(&line).play().await.verdict.unwrap_err();
        assert_eq!((failure.code, failure.message.as_str()), (Code::Rejected, sentence));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_and_sessions_are_recorded_without_secrets() {
    let lines = r#"{"type":"usage","input_tokens":7,"cost":0.5,"model":"m"}
        {"type":"session","id":"correct-horse-battery"}
        {"type":"text","text":"x"}"#;
    let mut stage = telling(lines);
    stage.secrets = vec!["correct-horse-battery".to_owned()];
    let story = stage.play().await;
    let numbers = [("cost".to_owned(), serde_json::Number::from_f64(0.5).unwrap())]
        .into_iter()
        .chain([("input_tokens".to_owned(), 7.into())]);
    assert!(
        story.facts().contains(&&EventKind::UsageReported {
            counters: numbers.collect(),
            cumulative: false
        })
    );
    let session = story.facts().into_iter().find_map(|fact| match fact {
        EventKind::Session { id } => Some(id.clone()),
        _ => None,
    });
    assert!(!session.unwrap().contains("correct"));
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_no_output_and_malformed_events_are_warned_of() {
    let story = telling(r#"{"type":"status","text":"on it"}"#).play().await;
    assert_eq!((story.code(), warned(&story)), (Some(Code::EmptyAnswer), false));
    for bad in [
        r#"{"type":"artifact"}"#,
        r#"{"type":"message","parts":[]}"#,
        r#"{"type":"artifact","file":{"bytes":"?"}}"#,
        r#"{"type":"usage","model":"m"}"#,
    ] {
        let story = telling(bad).play().await;
        assert_eq!((story.code(), warned(&story)), (Some(Code::EmptyAnswer), true), "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_over_the_limit_are_counted() {
    let line = format!("{{\"type\":\"artifact\",\"text\":\"{}\"}}\n", "x".repeat(744));
    let mut stage = telling(&line.repeat(5));
    stage.spec.limits.sizes.output = 3500;
    let story = stage.play().await;
    assert_eq!((story.code(), made(&story).len()), (None, 3));
    let cut = EventKind::OutputTruncated { channel: TextChannel::Parts, dropped: 2000 };
    assert!(story.facts().contains(&&cut));
}
