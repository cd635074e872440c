//! Content of events that is not delivered, and bytes that are no text: the task fails, or has a warning.

use serde_json::json;

use crate::harness::client::{failed_outcome, task_outcome};
use crate::unreadable_output::{OutputCase, start_with_outputs};

/// A question whose words cannot be read is no question.
#[tokio::test]
async fn a_question_without_readable_words_fails() {
    let events = [
        r#"{"type":"input_required","parts":[{"text":1}]}"#,
        r#"{"type":"auth_required","url":"https://sign-in.example","text":7}"#,
        r#"{"type":"input_required","file":{"path":1}}"#,
        r#"{"type":"input_required","text":"which?","file":{"name":"l","bytes":"a*"}}"#,
        r#"{"type":"input_required","text":"which?","file":{"bytes":[1,2]}}"#,
        r#"{"type":"auth_required","text":"where?","file":{"bytes":"a*"}}"#,
    ];
    let cases = events
        .iter()
        .enumerate()
        .map(|(number, event)| (format!("asks-{number}"), "events", event.as_bytes().to_vec()));
    let cases: Vec<_> = cases.collect();
    let service = start_with_outputs(&cases).await;
    for (id, ..) in &cases {
        let task = service.send(id, "hello").await;
        assert_eq!(task_outcome(&task), failed_outcome("output-unreadable"), "{id}: {task}");
    }
}

/// A part of an artifact in another form is not dropped beside the part that can be read.
#[tokio::test]
async fn a_file_of_another_form_is_not_dropped_silently() {
    let artifact_event = |members: &str| {
        format!("{{\"type\":\"artifact\",\"name\":\"n\",\"text\":\"t\",{members}}}\n").into_bytes()
    };
    let lost_members = [
        r#""file":[{"bytes":"aGk="}]"#,
        r#""file":{"name":"f","bytes":[1,2]}"#,
        r#""url":5"#,
        r#""parts":[{"text":"a","file":7}]"#,
    ];
    let mut cases: Vec<OutputCase> = Vec::new();
    for (number, members) in lost_members.into_iter().enumerate() {
        cases.push((format!("lost-{number}"), "events", artifact_event(members)));
    }
    cases.push(("place".to_owned(), "events", artifact_event(r#""file":"out/report.pdf""#)));
    cases.push(("empty".to_owned(), "events", artifact_event(r#""file":{},"url":"","data":null"#)));
    let status =
        r#"{"type":"status","text":"compiling","file":"main.rs"}{"type":"text","text":"a"}"#;
    cases.push(("progress".to_owned(), "events", status.as_bytes().to_vec()));
    let service = start_with_outputs(&cases).await;
    for (id, ..) in &cases {
        let task = service.send(id, "hello").await;
        let (state, warnings) = (&task["status"]["state"], task["metadata"].get("warnings"));
        match id.as_str() {
            "place" => {
                assert_eq!(state, "completed", "{task}");
                let warning = warnings.unwrap()[0].as_str().unwrap();
                assert!(warning.contains("has a `file` that is a text"), "{warning}");
            }
            "empty" | "progress" => {
                assert_eq!((state, warnings), (&json!("completed"), None), "{task}");
            }
            _ => {
                assert_eq!(
                    task_outcome(&task),
                    failed_outcome("output-unreadable"),
                    "{id}: {task}"
                );
            }
        }
    }
}

/// The task counts the bytes that a caller does not get.
#[tokio::test]
async fn bytes_that_are_no_text_are_counted() {
    let utf_16: Vec<u8> = "r\u{e9}sultat: 42\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let cases: Vec<OutputCase> = [
        ("latin", b"caf\xe9 and th\xe9\n".to_vec(), 2),
        ("utf-16", utf_16, 1),
        ("gzip", b"\x1f\x8b\x08\0\0\0\0\0".to_vec(), 1),
        ("split", [vec![b'x'; 65_535], "\u{e9}\n".as_bytes().to_vec()].concat(), 0),
        ("text", "caf\u{e9}\n".as_bytes().to_vec(), 0),
    ]
    .map(|(id, bytes, count)| (format!("{id}-{count}"), "stdout", bytes))
    .into();
    let service = start_with_outputs(&cases).await;
    for (id, ..) in &cases {
        let task = service.send(id, "hello").await;
        assert_eq!(task["status"]["state"], "completed", "{task}");
        let warning = task["metadata"]["warnings"][0].as_str().unwrap_or("0 bytes");
        assert_eq!(warning.split(' ').next(), id.split('-').next_back(), "{id}: {warning}");
    }
}

#[tokio::test]
async fn the_reason_of_a_failure_is_printed_once() {
    let event = br#"{"type":"artifact","text":"see","file":{"path":"gone.pdf"}}"#;
    let service = start_with_outputs(&[("one".to_owned(), "events", event.to_vec())]).await;
    let output = service.run_command(&["send", "one", "hello"], "").await;
    assert_eq!(output.exit_code, Some(5), "{output:?}");
    let sentence = "the file `gone.pdf` was not delivered";
    assert_eq!(output.stderr.matches(sentence).count(), 1, "{output:?}");
}
