//! Parts that the conversions of lines share: access to fields, construction of events, and the meaning of errors.

use algonius_actors::decide::classify::http_status_parser::{
    find_last_status, reports_quota, reports_rate_limit,
};
use serde_json::{Map, Number, Value};

use super::event_line::{
    EventParseError, FileChange, ProgramEvent, ReportedFailure, ResultLoss, ToolStage,
};

/// Greatest number of characters of an error message that are examined.
const MAX_EXAMINED_CHARS: usize = 64 << 10;

/// HTTP status that some programs give in words only.
const TOO_MANY_REQUESTS: u16 = 429;

/// Returns the text at a JSON pointer such as `/item/type`, or an empty text if there is none.
pub(super) fn text_at<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the text at a JSON pointer, if it is not empty.
pub(super) fn non_empty_text_at<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    Some(text_at(value, pointer)).filter(|text| !text.is_empty())
}

/// Returns an event if a member of a line should be a text and is another value. Absent and `null` count as empty.
pub(super) fn malformed_event_unless_text_or_null(
    line: &Value,
    pointer: &str,
) -> Option<ProgramEvent> {
    let value = line.pointer(pointer)?;
    (!value.is_string() && !value.is_null()).then(|| malformed_line_event(line))
}

/// Returns an event if a member of a line is no text. Absent and `null` do not count as a text either.
pub(super) fn malformed_event_unless_text(line: &Value, pointer: &str) -> Option<ProgramEvent> {
    let is_text = line.pointer(pointer).is_some_and(Value::is_string);
    (!is_text).then(|| malformed_line_event(line))
}

/// Returns the event for a line of the result whose members are not those of its type.
pub(super) fn malformed_line_event(line: &Value) -> ProgramEvent {
    ProgramEvent::Malformed(EventParseError {
        reason: "does not have the fields of its `type`".into(),
        text: line.to_string(),
        loss: ResultLoss::Likely,
    })
}

/// Returns the items of the list at a JSON pointer.
pub(super) fn items_at<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the HTTP status at a JSON pointer.
pub(super) fn http_status_at(value: &Value, pointer: &str) -> Option<u16> {
    let status = value.pointer(pointer)?.as_u64()?;
    u16::try_from(status).ok().filter(|status| (100..600).contains(status))
}

/// Returns the event with the agent's own session.
pub(super) fn session_event(value: &Value, pointer: &str) -> Option<ProgramEvent> {
    non_empty_text_at(value, pointer).map(|id| ProgramEvent::Session { id: id.to_owned() })
}

/// Returns the event with used amounts: each place has the name and the JSON pointer. `None` if no number is found.
pub(super) fn usage_event(
    value: &Value,
    pointers: &[(&str, &str)],
    cumulative: bool,
) -> Option<ProgramEvent> {
    let number = |(name, pointer): &(&str, &str)| {
        let number: Number = value.pointer(pointer)?.as_number()?.clone();
        Some(((*name).to_owned(), Value::Number(number)))
    };
    let fields: Map<String, Value> = pointers.iter().filter_map(number).collect();
    (!fields.is_empty()).then_some(ProgramEvent::Usage { cumulative, fields })
}

/// Returns the event for the use of a tool.
pub(super) fn tool_event(id: Option<&str>, tool: &str, stage: ToolStage) -> ProgramEvent {
    ProgramEvent::ToolCall { id: id.map(ToOwned::to_owned), tool: tool.to_owned(), stage }
}

/// Returns the event for the change of a file.
pub(super) fn file_event(path: &str, change: FileChange) -> ProgramEvent {
    ProgramEvent::FileChange { path: path.to_owned(), change }
}

/// Returns the event for a denied tool.
pub(super) fn denial_event(tool: &str) -> ProgramEvent {
    ProgramEvent::PermissionDenied { tool: tool.to_owned() }
}

/// Returns the event for the end.
pub(super) fn stop_event(reason: &str) -> ProgramEvent {
    ProgramEvent::Stop { reason: reason.to_owned() }
}

/// Returns a failure with the program's message, the given status or the one in the message, and its category.
pub(super) fn reported_failure(message: &str, status: Option<u16>) -> ReportedFailure {
    let excerpt: String = message.chars().take(MAX_EXAMINED_CHARS).collect();
    let lowercase = excerpt.to_lowercase();
    // Some programs give the status in their message only.
    let status = status.or_else(|| find_last_status(&excerpt));
    let status = status.or_else(|| reports_rate_limit(&lowercase).then_some(TOO_MANY_REQUESTS));
    let category = failure_category(&lowercase).to_owned();
    ReportedFailure { message: excerpt, category, status, ..ReportedFailure::default() }
}

/// Returns the category that the words give where no status does.
fn failure_category(message: &str) -> &'static str {
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| message.contains(phrase));
    if has(&["not logged in", "failed to authenticate", "authentication failed"])
        || has(&[
            "no authentication information",
            "missing environment variable",
            "invalid api key",
        ])
    {
        "authentication"
    } else if reports_quota(message) {
        "quota"
    } else if has(&["overloaded"]) {
        "overload"
    } else if has(&["high demand", "temporarily", "fetch failed"])
        || has(&["stream disconnected", "connection refused", "connection error", "timed out"])
        || has(&["without a finish reason", "answer was cut off"])
        || has(&["api error: terminated", "premature close", "socket hang up", "econnreset"])
    {
        "transient"
    } else {
        ""
    }
}
