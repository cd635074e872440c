//! Agent for the A2A conformance kits, with events as output; the kit selects the behaviour by the message's id or, in
//! newer kits, by the start of its text.

use std::env;
use std::error::Error;
use std::io::{self, Read};
use std::time::Duration;

use serde_json::{Value, json};

use super::{pause, say, word};

/// Exit code of a role.
type Played = Result<u8, Box<dyn Error>>;

/// Prefix, and the behaviour for it.
type Act = (&'static str, fn() -> Played);

/// Behaviours by prefix; a longer prefix precedes a shorter one that it starts with.
const ACTS: &[Act] = &[
    ("tck-complete-task", || end("Hello from TCK")),
    ("tck-artifact-text", || made(&json!({"text": "Generated text content"}))),
    ("tck-artifact-file-url", || made(&url())),
    ("tck-artifact-file", || made(&file())),
    ("tck-artifact-data", || made(&json!({"data": {"key": "value", "count": 42}}))),
    ("tck-message-response", || tell("message", &json!({"text": "Direct message response"}))),
    ("tck-input-required", || ask("Input is required")),
    ("tck-auth-required", || tell("auth_required", &json!({"text": "Authentication is required"}))),
    ("tck-reject-task", || tell("rejected", &json!({"message": "Task rejected"}))),
    ("tck-stream-001", || streamed(&json!({"text": "Stream hello from TCK"}))),
    ("tck-stream-002", || end("Completed")),
    ("tck-stream-003", || streamed(&json!({"text": "Stream task lifecycle"}))),
    ("tck-stream-ordering-001", || streamed(&json!({"text": "Ordered output"}))),
    ("tck-stream-artifact-text", || streamed(&json!({"text": "Streamed text content"}))),
    ("tck-stream-artifact-file", || streamed(&file())),
    ("tck-stream-artifact-chunked", chunks),
    ("tck-stream-chunked", chunks),
    ("tck-stream-basic", || streamed(&json!({"text": "Streamed text content"}))),
    ("test-resubscribe-message-id", || work(8)),
    ("tck-long-running", || work(10)),
    ("tck-multi-turn", turns),
    ("tck-cancel", || work(1200)),
    ("tck-task-failure", || tell("failed", &json!({"message": "Task failed"}))),
];

/// Plays the agent of the kit for this version of the protocol.
pub(super) fn play(told: &[String]) -> Played {
    let id = env::var("A2A_MESSAGE_ID").unwrap_or_default();
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    match word(told, 0) {
        "0.3" if id.starts_with("test-resubscribe-message-id") => work(10),
        "0.3" => asking(),
        "1.0" => {
            let wants = |prefix: &str| id.starts_with(prefix) || text.starts_with(prefix);
            let act = ACTS.iter().find(|(prefix, _)| wants(prefix));
            act.map_or_else(|| tell("text", &json!({"text": "Hello from TCK\n"})), |(_, act)| act())
        }
        other => Err(format!("no kit `{other}`; say `0.3` or `1.0`").into()),
    }
}

/// Writes one event with this type and these fields.
fn tell(kind: &str, fields: &Value) -> Played {
    let mut event = json!({"type": kind});
    if let (Some(event), Some(fields)) = (event.as_object_mut(), fields.as_object()) {
        event.extend(fields.clone());
    }
    say(&format!("{event}\n"))
}

fn end(text: &str) -> Played {
    tell("status", &json!({"state": "completed", "text": text}))
}

fn ask(text: &str) -> Played {
    tell("input_required", &json!({"text": text}))
}

fn made(part: &Value) -> Played {
    tell("artifact", &json!({"name": "output", "parts": [part]}))
}

fn streamed(part: &Value) -> Played {
    tell("status", &json!({"text": "working"}))?;
    made(part)
}

fn chunks() -> Played {
    tell("status", &json!({"text": "working"}))?;
    tell("artifact", &json!({"id": "chunked-artifact", "text": "chunk-1\n", "last": false}))?;
    tell("artifact", &json!({"id": "chunked-artifact", "text": "chunk-2", "append": true}))
}

fn file() -> Value {
    json!({"file": {"name": "output.txt", "media_type": "text/plain", "text": "tck"}})
}

fn url() -> Value {
    let url = "https://example.com/output.txt";
    json!({"url": url, "name": "output.txt", "media_type": "text/plain"})
}

/// Works for this many half seconds, with a status event in each.
fn work(halves: u32) -> Played {
    for half in 1..=halves {
        tell("status", &json!({"text": format!("step {half} of {halves}")}))?;
        pause(Duration::from_millis(500));
    }
    end("Done")
}

/// Requests input at every turn, as the agents of the official kits do.
fn asking() -> Played {
    tell("status", &json!({"text": "working"}))?;
    pause(Duration::from_millis(500));
    ask("What else?")
}

/// Requests input at the first turn, then completes.
fn turns() -> Played {
    let is_first = env::var("ALGONIUS_TURN").is_ok_and(|turn| turn == "1");
    if is_first { ask("What else?") } else { end("Done") }
}
