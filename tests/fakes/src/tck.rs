//! Agent for the A2A conformance kits, with events as output; the kit selects the behaviour by the message's id or, in
//! newer kits, by the start of its text.

use std::env;
use std::error::Error;
use std::io::{self, Read};
use std::time::Duration;

use serde_json::{Value, json};

use super::{argument, pause, print};

/// Exit code of a role.
type RoleResult = Result<u8, Box<dyn Error>>;

/// Prefix, and the behaviour for it.
type Behaviour = (&'static str, fn() -> RoleResult);

/// Behaviours by prefix; a longer prefix precedes a shorter one that it starts with.
const BEHAVIOURS: &[Behaviour] = &[
    ("tck-complete-task", || report_completed("Hello from TCK")),
    ("tck-artifact-text", || write_artifact(&json!({"text": "Generated text content"}))),
    ("tck-artifact-file-url", || write_artifact(&url_part())),
    ("tck-artifact-file", || write_artifact(&file_part())),
    ("tck-artifact-data", || write_artifact(&json!({"data": {"key": "value", "count": 42}}))),
    ("tck-message-response", || {
        write_event("message", &json!({"text": "Direct message response"}))
    }),
    ("tck-input-required", || request_input("Input is required")),
    ("tck-auth-required", || {
        write_event("auth_required", &json!({"text": "Authentication is required"}))
    }),
    ("tck-reject-task", || write_event("rejected", &json!({"message": "Task rejected"}))),
    ("tck-stream-001", || stream_artifact(&json!({"text": "Stream hello from TCK"}))),
    ("tck-stream-002", || report_completed("Completed")),
    ("tck-stream-003", || stream_artifact(&json!({"text": "Stream task lifecycle"}))),
    ("tck-stream-ordering-001", || stream_artifact(&json!({"text": "Ordered output"}))),
    ("tck-stream-artifact-text", || stream_artifact(&json!({"text": "Streamed text content"}))),
    ("tck-stream-artifact-file", || stream_artifact(&file_part())),
    ("tck-stream-artifact-chunked", stream_chunks),
    ("tck-stream-chunked", stream_chunks),
    ("tck-stream-basic", || stream_artifact(&json!({"text": "Streamed text content"}))),
    ("test-resubscribe-message-id", || work(8)),
    ("tck-long-running", || work(10)),
    ("tck-multi-turn", request_input_on_first_turn),
    ("tck-cancel", || work(1200)),
    ("tck-task-failure", || write_event("failed", &json!({"message": "Task failed"}))),
];

/// Plays the agent of the kit for this version of the protocol.
pub(super) fn run(args: &[String]) -> RoleResult {
    let id = env::var("A2A_MESSAGE_ID").unwrap_or_default();
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    match argument(args, 0) {
        "0.3" if id.starts_with("test-resubscribe-message-id") => work(10),
        "0.3" => request_input_every_turn(),
        "1.0" => {
            let has_prefix = |prefix: &str| id.starts_with(prefix) || text.starts_with(prefix);
            let behaviour = BEHAVIOURS.iter().find(|(prefix, _)| has_prefix(prefix));
            behaviour.map_or_else(
                || write_event("text", &json!({"text": "Hello from TCK\n"})),
                |(_, behaviour)| behaviour(),
            )
        }
        other => Err(format!("no kit `{other}`; say `0.3` or `1.0`").into()),
    }
}

/// Writes one event with this type and these fields.
fn write_event(kind: &str, fields: &Value) -> RoleResult {
    let mut event = json!({"type": kind});
    if let (Some(event), Some(fields)) = (event.as_object_mut(), fields.as_object()) {
        event.extend(fields.clone());
    }
    print(&format!("{event}\n"))
}

fn report_completed(text: &str) -> RoleResult {
    write_event("status", &json!({"state": "completed", "text": text}))
}

fn request_input(text: &str) -> RoleResult {
    write_event("input_required", &json!({"text": text}))
}

fn write_artifact(part: &Value) -> RoleResult {
    write_event("artifact", &json!({"name": "output", "parts": [part]}))
}

fn stream_artifact(part: &Value) -> RoleResult {
    write_event("status", &json!({"text": "working"}))?;
    write_artifact(part)
}

fn stream_chunks() -> RoleResult {
    write_event("status", &json!({"text": "working"}))?;
    write_event(
        "artifact",
        &json!({"id": "chunked-artifact", "text": "chunk-1\n", "last": false}),
    )?;
    write_event("artifact", &json!({"id": "chunked-artifact", "text": "chunk-2", "append": true}))
}

fn file_part() -> Value {
    json!({"file": {"name": "output.txt", "media_type": "text/plain", "text": "tck"}})
}

fn url_part() -> Value {
    let url = "https://example.com/output.txt";
    json!({"url": url, "name": "output.txt", "media_type": "text/plain"})
}

/// Works for this many half seconds, with a status event in each.
fn work(half_seconds: u32) -> RoleResult {
    for half in 1..=half_seconds {
        write_event("status", &json!({"text": format!("step {half} of {half_seconds}")}))?;
        pause(Duration::from_millis(500));
    }
    report_completed("Done")
}

/// Requests input at every turn, as the agents of the official kits do.
fn request_input_every_turn() -> RoleResult {
    write_event("status", &json!({"text": "working"}))?;
    pause(Duration::from_millis(500));
    request_input("What else?")
}

/// Requests input at the first turn, then completes.
fn request_input_on_first_turn() -> RoleResult {
    let is_first = env::var("ALGONIUS_TURN").is_ok_and(|turn| turn == "1");
    if is_first { request_input("What else?") } else { report_completed("Done") }
}
