//! Events that exceed a limit: what is lost with them is reported, or fails the attempt.

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::{EventKind, TextChannel};

use super::{artifacts, event_program, event_script_program};
use crate::drivers::program::tests::fixture::AttemptRecord;

fn warnings(record: &AttemptRecord) -> Vec<&str> {
    let warnings = record.events().into_iter().filter_map(|event| match event {
        EventKind::Warning { message } => Some(message.as_str()),
        _ => None,
    });
    warnings.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_over_the_limit_are_counted() {
    let line = format!("{{\"type\":\"artifact\",\"text\":\"{}\"}}\n", "x".repeat(744));
    let mut fixture = event_program(&line.repeat(5));
    fixture.spec.limits.sizes.max_output_bytes = 3500;
    let record = fixture.run_to_end().await;
    assert_eq!((record.failure_code(), artifacts(&record).len()), (Some(Code::OutputTooLarge), 3));
    let message = "the agent returned more in artifacts and messages than the 3500 bytes of \
                   `max_output_bytes`; at least 2000 bytes were not delivered";
    assert_eq!(record.result.as_ref().unwrap_err().message, message);
    let truncation_event =
        EventKind::OutputTruncated { channel: TextChannel::Parts, dropped: 2000 };
    assert!(record.events().contains(&&truncation_event));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_lost_part_of_the_result_fails_the_attempt() {
    let big = "x".repeat(4000);
    let fitting = "x".repeat(3000);
    for (event, code) in [
        (format!(r#"{{"type":"status","text":"{big}"}}"#), None),
        (
            format!(
                r#"{{"type":"status","text":"{fitting}"}}{{"type":"artifact","text":"{fitting}"}}"#
            ),
            None,
        ),
        (format!(r#"{{"type":"message","text":"{big}"}}"#), Some(Code::OutputTooLarge)),
        (format!(r#"{{"type":"input_required","text":"{big}"}}"#), Some(Code::OutputTooLarge)),
        (format!(r#"{{"type":"text","text":"{big}"}}"#), None),
        (
            format!(r#"{{"type":"status","state":"completed","text":"{big}"}}"#),
            Some(Code::OutputTooLarge),
        ),
        (
            format!(r#"{{"type":"artifact","text":"{big}"}}{{"type":"failed","message":"no"}}"#),
            Some(Code::Reported),
        ),
    ] {
        let mut fixture =
            event_program(&format!("{event}\n{{\"type\":\"text\",\"text\":\"done\"}}\n"));
        fixture.spec.limits.sizes.max_output_bytes = 3500;
        let record = fixture.run_to_end().await;
        assert_eq!(record.failure_code(), code, "{}", event.get(..40).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_over_the_limit_hides_nothing_after_it() {
    let big = "x".repeat(5000);
    let lines = [
        format!(r#"{{"type":"artifact","id":"big","text":"{big}","last":false}}"#),
        r#"{"type":"artifact","id":"big","text":"its end","append":true}"#.to_owned(),
        r#"{"type":"artifact","id":"small","text":"fits"}"#.to_owned(),
        r#"{"type":"usage","input_tokens":7}"#.to_owned(),
    ];
    let mut fixture = event_program(&lines.join("\n"));
    fixture.spec.limits.sizes.max_output_bytes = 3500;
    let record = fixture.run_to_end().await;
    assert_eq!((record.failure_code(), artifacts(&record).len()), (Some(Code::OutputTooLarge), 1));
    let (has_usage, dropped) =
        record.events().into_iter().fold((false, 0), |seen, event| match event {
            EventKind::UsageReported { .. } => (true, seen.1),
            EventKind::OutputTruncated { dropped, .. } => (seen.0, *dropped),
            _ => seen,
        });
    assert_eq!((has_usage, dropped), (true, 5256 + 263));
}

#[tokio::test(flavor = "multi_thread")]
async fn values_over_the_limits_of_an_event_are_reported() {
    let counters: Vec<_> = (0..65).map(|number| format!(r#""c{number:02}":1"#)).collect();
    let usage = format!(r#"{{"type":"usage",{}}}"#, counters.join(","));
    let session = |length| format!(r#"{{"type":"session","id":"{}"}}"#, "s".repeat(length));
    for (line, warning) in [
        (usage.replace(r#","c64":1"#, ""), None),
        (usage, Some("has 65 counters; only the first 64")),
        (session(4096), None),
        (session(4097), Some("a session id that is longer than 4096 bytes")),
        (session(0), None),
        (r#"{"type":"session","id":"a\u0007b"}"#.to_owned(), Some("or has control characters")),
    ] {
        let lines = format!("{line}\n{{\"type\":\"text\",\"text\":\"done\"}}\n");
        let record = event_program(&lines).run_to_end().await;
        assert_eq!(record.failure_code(), None, "{}", line.len());
        let is_as_expected = match (warning, &*warnings(&record)) {
            (Some(warning), [reported]) => reported.contains(warning),
            (None, []) => true,
            _ => false,
        };
        assert!(is_as_expected, "{:?}", warnings(&record));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn artifacts_with_long_ids_remain_apart() {
    let prefix = "/a/long/path".repeat(40);
    let line = |id: &str, text: &str, append| {
        format!(
            r#"{{"type":"artifact","id":"{prefix}{id}","text":"{text}","append":{append},"last":{append}}}"#
        )
    };
    let lines = [
        line("1", "one", false),
        line("2", "two", false),
        line("1", " and more", true),
        line("2", " and else", true),
    ];
    let record = event_program(&lines.join("\n")).run_to_end().await;
    let mut texts_by_id = std::collections::BTreeMap::<String, String>::new();
    for (id, texts, ..) in artifacts(&record) {
        texts_by_id.entry(id).or_default().extend(texts.into_iter().map(|(_, text)| text));
    }
    let texts: Vec<_> = texts_by_id.values().map(String::as_str).collect();
    assert_eq!(texts, ["one and more", "two and else"], "{texts_by_id:?}");
    assert!(texts_by_id.keys().all(|id| id.chars().count() < 320), "{texts_by_id:?}");
    let short = r#"{"type":"artifact","id":"report…","text":"one"}"#;
    let ids = |record: &AttemptRecord| -> Vec<_> {
        artifacts(record).into_iter().map(|(id, ..)| id).collect()
    };
    assert_eq!(ids(&event_program(short).run_to_end().await), ["report…"]);
    // The id of an artifact is the same in another attempt, whatever came before it.
    let second = event_program(&line("2", "two", false)).run_to_end().await;
    assert_eq!(ids(&second).first(), ids(&record).get(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_file_fails_only_the_result() {
    for (event, code) in [
        (r#"{"type":"status","file":{"path":"big"}}"#, None),
        (r#"{"type":"message","file":{"path":"big"}}"#, Some(Code::OutputTooLarge)),
        (r#"{"type":"artifact","file":{"path":"big"}}"#, Some(Code::OutputTooLarge)),
    ] {
        let text = r#"{"type":"text","text":"done"}"#;
        let script = format!("head -c 9000 /dev/zero > big; echo '{event}'; echo '{text}'");
        let mut fixture = event_script_program(&script, &[]);
        fixture.spec.limits.sizes.max_output_bytes = 9_000;
        let record = fixture.run_to_end().await;
        assert_eq!((record.failure_code(), warnings(&record).len()), (code, 1), "{event}");
    }
}
