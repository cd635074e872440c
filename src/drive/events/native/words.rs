//! What the kinds of events have in common: how their fields are read, and what their errors mean.

use serde_json::{Map, Number, Value};

use crate::drive::events::line::{Change, Event, Failing, Stage};

/// The longest sentence of an error that is looked at, in bytes.
const LONGEST: usize = 4096;

/// The status that some programs tell in words alone.
const TOO_MANY_REQUESTS: u16 = 429;

/// A text at a place such as `/item/type`; an empty one where there is none.
pub(super) fn text<'v>(value: &'v Value, place: &str) -> &'v str {
    value.pointer(place).and_then(Value::as_str).unwrap_or_default()
}

/// A text at a place, where it is not empty.
pub(super) fn some_text<'v>(value: &'v Value, place: &str) -> Option<&'v str> {
    Some(text(value, place)).filter(|text| !text.is_empty())
}

/// The items of a list at a place.
pub(super) fn items<'v>(value: &'v Value, place: &str) -> &'v [Value] {
    value.pointer(place).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// An HTTP status at a place.
pub(super) fn status(value: &Value, place: &str) -> Option<u16> {
    let status = value.pointer(place)?.as_u64()?;
    u16::try_from(status).ok().filter(|status| (100..600).contains(status))
}

/// The agent's own session.
pub(super) fn session(value: &Value, place: &str) -> Option<Event> {
    some_text(value, place).map(|id| Event::Session { id: id.to_owned() })
}

/// Numbers of what was used: our name for each, and where it stands. Nothing where there are none.
pub(super) fn usage(value: &Value, places: &[(&str, &str)], cumulative: bool) -> Option<Event> {
    let number = |(name, place): &(&str, &str)| {
        let number: Number = value.pointer(place)?.as_number()?.clone();
        Some(((*name).to_owned(), Value::Number(number)))
    };
    let fields: Map<String, Value> = places.iter().filter_map(number).collect();
    (!fields.is_empty()).then_some(Event::Usage { cumulative, fields })
}

/// The use of a tool.
pub(super) fn tool(id: Option<&str>, tool: &str, stage: Stage) -> Event {
    Event::ToolCall { id: id.map(ToOwned::to_owned), tool: tool.to_owned(), stage }
}

/// A change of a file.
pub(super) fn file(path: &str, change: Change) -> Event {
    Event::FileChange { path: path.to_owned(), change }
}

/// A tool that was not let be used.
pub(super) fn denied(tool: &str) -> Event {
    Event::PermissionDenied { tool: tool.to_owned() }
}

/// The word for the end.
pub(super) fn stop(reason: &str) -> Event {
    Event::Stop { reason: reason.to_owned() }
}

/// A failure in the program's words: its status as told, or as the words tell it, and what it is.
pub(super) fn failing(message: &str, status: Option<u16>) -> Failing {
    let words: String = message.chars().take(LONGEST).collect();
    let small = words.to_lowercase();
    let status = status.or_else(|| algonius_actors::decide::status::find(&words));
    let status = status.or_else(|| is_too_much(&small).then_some(TOO_MANY_REQUESTS));
    let category = category(&small).to_owned();
    Failing { message: words, category, status, ..Failing::default() }
}

fn is_too_much(words: &str) -> bool {
    ["rate limit", "too many requests", "resource_exhausted", "resource exhausted"]
        .iter()
        .any(|sign| words.contains(sign))
}

/// What words say that no status does.
fn category(words: &str) -> &'static str {
    let has = |signs: &[&str]| signs.iter().any(|sign| words.contains(sign));
    if has(&["not logged in", "failed to authenticate", "authentication failed"])
        || has(&[
            "no authentication information",
            "missing environment variable",
            "invalid api key",
        ])
    {
        "authentication"
    } else if has(&["usage limit", "session limit", "weekly limit", "limit reached"])
        || has(&["quota exceeded", "exceeded your current quota", "insufficient_quota"])
    {
        "quota"
    } else if has(&["overloaded", "high demand", "temporarily", "fetch failed"])
        || has(&["stream disconnected", "connection refused", "connection error", "timed out"])
        || has(&["api error: terminated", "premature close", "socket hang up", "econnreset"])
    {
        "transient"
    } else {
        ""
    }
}
