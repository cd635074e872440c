//! Other forms in which programs write events of this project.
//!
//! Without them, a program whose status is `failed` would have succeeded, and a reason or a question in another member
//! would be lost.

use serde_json::{Map, Value};

use super::CONTENT_MEMBERS;

/// State of a status event whose message is the last one.
pub(super) const COMPLETED: &str = "completed";

/// Returns the events of an object in their documented form. Content that does not fit into the second event is a
/// progress message before it.
pub(super) fn to_documented_events(object: &Value) -> [Option<Value>; 2] {
    let Some(mut members) = object.as_object().cloned() else {
        return [None, Some(object.clone())];
    };
    replace_final_status(&mut members);
    if matches!(
        event_type(&members),
        Some("failed" | "rejected" | "status" | "input_required" | "auth_required")
    ) {
        flatten_message(&mut members);
    }
    let progress = match event_type(&members) {
        Some("failed" | "rejected") => {
            copy_reason_to_message(&mut members);
            build_progress_event(&members)
        }
        Some("status" | "input_required" | "auth_required") => {
            copy_message_to_text(&mut members);
            None
        }
        _ => None,
    };
    [progress, Some(Value::Object(members))]
}

/// Returns true if a status event in this state means more than progress.
pub(super) fn is_final(state: &str) -> bool {
    final_state(state).is_some()
}

/// Returns a state after which the program does not continue, in the words of this protocol. A2A has other spellings.
fn final_state(state: &str) -> Option<&'static str> {
    let state = state.to_ascii_lowercase().replace('-', "_");
    Some(match state.strip_prefix("task_state_").unwrap_or(&state) {
        COMPLETED => COMPLETED,
        // A program has no other word for work that it gave up.
        "failed" | "canceled" | "cancelled" => "failed",
        "rejected" => "rejected",
        "input_required" => "input_required",
        "auth_required" => "auth_required",
        _ => return None,
    })
}

/// Replaces a status event in a final state by the event that has this effect.
fn replace_final_status(members: &mut Map<String, Value>) {
    if event_type(members) != Some("status") {
        return;
    }
    match members.get("state").and_then(Value::as_str).and_then(final_state) {
        Some(COMPLETED) => set_text(members, "state", COMPLETED),
        Some(event_type) => set_text(members, "type", event_type),
        None => {}
    }
}

/// Replaces a message of A2A, or an object with a text, by its content.
fn flatten_message(members: &mut Map<String, Value>) {
    let Some(Value::Object(message)) = members.get("message") else { return };
    let parts = message.get("parts").filter(|parts| parts.is_array()).cloned();
    let text = message.get("text").or_else(|| message.get("message")).and_then(text_of);
    // An object without either stays, so that the event is reported as malformed.
    match (parts, text) {
        (Some(parts), _) if !members.contains_key("parts") => {
            members.remove("message");
            members.insert("parts".to_owned(), parts);
        }
        (_, Some(text)) => set_text(members, "message", &text),
        _ => {}
    }
}

/// Copies the reason of a failure or rejection into `message`, if that has none.
fn copy_reason_to_message(members: &mut Map<String, Value>) {
    match members.get("message") {
        None | Some(Value::Null) => {}
        Some(message) if message.as_str().is_some_and(str::is_empty) => {}
        Some(_) => return,
    }
    let reason = ["text", "error"].into_iter().find_map(|name| text_of(members.get(name)?));
    let reason = reason.or_else(|| text_of_parts(members.get("parts")?));
    set_text(members, "message", &reason.unwrap_or_default());
}

/// Returns a progress message with the content of a failure or rejection that is no text.
fn build_progress_event(members: &Map<String, Value>) -> Option<Value> {
    let is_text = |part: &Value| {
        part.as_object().is_some_and(|part| {
            part.contains_key("text")
                && !["data", "file", "url"].iter().any(|it| part.contains_key(*it))
        })
    };
    let has_content = |name: &str| match (name, members.get(name)) {
        ("text", _) | (_, None | Some(Value::Null)) => false,
        ("parts", Some(Value::Array(parts))) => !parts.iter().all(is_text),
        (_, Some(_)) => true,
    };
    if !CONTENT_MEMBERS.iter().any(|name| has_content(name)) {
        return None;
    }
    let names = CONTENT_MEMBERS.iter().chain(&["name", "media_type"]);
    let content = names.filter_map(|name| Some(((*name).to_owned(), members.get(*name)?.clone())));
    let mut progress: Map<_, _> = content.collect();
    set_text(&mut progress, "type", "status");
    Some(Value::Object(progress))
}

/// Copies the text of a question or of progress from `message` if the event has no other content.
fn copy_message_to_text(members: &mut Map<String, Value>) {
    // The address of an authentication is no content.
    let is_address = |name: &str| name == "url" && event_type(members) == Some("auth_required");
    let is_present = |name: &str| members.get(name).is_some_and(|value| !value.is_null());
    if CONTENT_MEMBERS.iter().any(|name| is_present(name) && !is_address(name)) {
        return;
    }
    let text_at = |name: &str| members.get(name)?.as_str().filter(|text| !text.is_empty());
    let text = ["message", "question"].into_iter().find_map(text_at);
    if let Some(text) = text.map(str::to_owned) {
        set_text(members, "text", &text);
    }
}

/// Returns a text, or the text in the member `message`.
fn text_of(value: &Value) -> Option<String> {
    let text = value.as_str().or_else(|| value.get("message")?.as_str());
    text.filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Returns the texts in parts.
fn text_of_parts(parts: &Value) -> Option<String> {
    let texts: Vec<_> =
        parts.as_array()?.iter().filter_map(|part| part.get("text")?.as_str()).collect();
    Some(texts.join(" ")).filter(|text| !text.is_empty())
}

fn event_type(members: &Map<String, Value>) -> Option<&str> {
    members.get("type").and_then(Value::as_str)
}

fn set_text(members: &mut Map<String, Value>, name: &str, text: &str) {
    members.insert(name.to_owned(), text.into());
}
