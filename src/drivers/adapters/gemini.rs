//! Events of `gemini --output-format stream-json`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::EventAdapter;
use super::draft_message::DraftMessage;
use super::event_line::{FileChange, ProgramEvent, ToolStage};
use super::line_conversion::{
    denial_event, file_event, malformed_event_unless_text, non_empty_text_at, reported_failure,
    session_event, stop_event, text_at, tool_event, usage_event,
};

/// Greatest number of calls that are remembered until their results arrive.
const MAX_OPEN_CALLS: usize = 1000;

const USAGE_POINTERS: [(&str, &str); 3] = [
    ("input_tokens", "/stats/input_tokens"),
    ("output_tokens", "/stats/output_tokens"),
    ("cache_read_tokens", "/stats/cached"),
];

/// State of a run.
#[derive(Default)]
pub(super) struct GeminiAdapter {
    /// All text of the program.
    draft: DraftMessage,
    /// Message that grows.
    current_message: String,
    open_calls: BTreeMap<String, (String, Option<String>)>,
    /// Latest error message that no result has followed.
    latest_error: Option<String>,
}

impl EventAdapter for GeminiAdapter {
    fn result_line_types(&self) -> &'static [&'static str] {
        &["message", "result"]
    }

    fn convert_line(&mut self, line: &Value) -> Vec<ProgramEvent> {
        let kind = text_at(line, "/type");
        // Only adjacent messages are pieces of the same one.
        if kind != "message" {
            self.current_message.clear();
        }
        match kind {
            "init" => session_event(line, "/session_id").into_iter().collect(),
            "message" if text_at(line, "/role") == "assistant" => self.handle_text(line),
            "tool_use" => vec![self.handle_call(line)],
            "tool_result" => self.handle_tool_result(line),
            "error" if text_at(line, "/severity") != "warning" => {
                self.latest_error = non_empty_text_at(line, "/message").map(ToOwned::to_owned);
                Vec::new()
            }
            "result" => self.handle_result(line),
            _ => Vec::new(),
        }
    }

    /// Returns the failure for an error after which nothing came.
    fn finish_output(&mut self) -> Vec<ProgramEvent> {
        let failure = self.latest_error.take();
        failure
            .map(|message| ProgramEvent::Failed(reported_failure(&message, None)))
            .into_iter()
            .collect()
    }
}

impl GeminiAdapter {
    /// Handles text, all of which belongs to the answer. A whole message that came in pieces before adds nothing.
    fn handle_text(&mut self, line: &Value) -> Vec<ProgramEvent> {
        if let Some(malformed) = malformed_event_unless_text(line, "/content") {
            return self.draft.handle_lost_message().into_iter().chain([malformed]).collect();
        }
        let content = text_at(line, "/content");
        let is_delta = line.pointer("/delta") == Some(&Value::Bool(true));
        if !is_delta && content == self.current_message {
            return Vec::new();
        }
        self.current_message.push_str(content);
        self.draft.extend(content)
    }

    fn handle_call(&mut self, line: &Value) -> ProgramEvent {
        let (id, name) = (text_at(line, "/tool_id"), text_at(line, "/tool_name"));
        let is_file_write = matches!(name, "write_file" | "replace" | "edit");
        let path = non_empty_text_at(line, "/parameters/file_path").filter(|_| is_file_write);
        // A call without a result is never removed, so their number is limited.
        if self.open_calls.len() < MAX_OPEN_CALLS {
            self.open_calls.insert(id.to_owned(), (name.to_owned(), path.map(ToOwned::to_owned)));
        }
        tool_event(Some(id), name, ToolStage::Started)
    }

    /// Handles the result of a tool. A forbidden tool is not offered to the model, so its call fails as unregistered.
    fn handle_tool_result(&mut self, line: &Value) -> Vec<ProgramEvent> {
        let id = text_at(line, "/tool_id");
        let Some((name, path)) = self.open_calls.remove(id) else { return Vec::new() };
        if text_at(line, "/status") != "error" {
            let change_event = path.map(|path| file_event(&path, FileChange::Modified));
            return [tool_event(Some(id), &name, ToolStage::Completed)]
                .into_iter()
                .chain(change_event)
                .collect();
        }
        let error_type = text_at(line, "/error/type");
        let phrases = ["not_registered", "denied", "policy", "permission"];
        let is_denied = phrases.iter().any(|phrase| error_type.contains(phrase))
            || text_at(line, "/error/message").starts_with("Access denied");
        let failure_event = tool_event(Some(id), &name, ToolStage::Failed);
        [failure_event].into_iter().chain(is_denied.then(|| denial_event(&name))).collect()
    }

    fn handle_result(&mut self, line: &Value) -> Vec<ProgramEvent> {
        let latest_error = self.latest_error.take();
        let mut events: Vec<ProgramEvent> =
            usage_event(line, &USAGE_POINTERS, false).into_iter().collect();
        if text_at(line, "/status") == "success" {
            events.extend(self.draft.accept());
            events.push(stop_event("end_turn"));
            return events;
        }
        let reported_message = non_empty_text_at(line, "/error/message").map(ToOwned::to_owned);
        let message = reported_message.or(latest_error).unwrap_or_default();
        events
            .extend([ProgramEvent::Failed(reported_failure(&message, None)), stop_event("error")]);
        events
    }
}
