//! Events of `opencode run --format json`.

use serde_json::Value;

use super::EventAdapter;
use super::draft_message::DraftMessage;
use super::event_line::{FileChange, ProgramEvent, ReportedFailure, ToolStage};
use super::line_conversion::{
    denial_event, file_event, http_status_at, malformed_event_unless_text, non_empty_text_at,
    reported_failure, session_event, stop_event, text_at, tool_event, usage_event,
};

const USAGE_POINTERS: [(&str, &str); 6] = [
    ("input_tokens", "/part/tokens/input"),
    ("output_tokens", "/part/tokens/output"),
    ("reasoning_tokens", "/part/tokens/reasoning"),
    ("cache_read_tokens", "/part/tokens/cache/read"),
    ("cache_write_tokens", "/part/tokens/cache/write"),
    ("cost_usd", "/part/cost"),
];

/// Finish reasons of an answer that is not whole.
const UNFINISHED_REASONS: [&str; 3] = ["length", "content-filter", "error"];

/// State of a run.
#[derive(Default)]
pub(super) struct OpencodeAdapter {
    draft: DraftMessage,
    session_id: String,
    /// Id of the latest message. Each step is one message.
    message_id: String,
    /// Complete parts of the latest message, as one text.
    complete_text: String,
    /// Trailing blanks of a piece: the program strips them at the end of a part.
    trailing_blanks: String,
    /// True if the stream of the latest step ended within the answer.
    is_truncated: bool,
    /// Finish reason of the latest step, if its answer is not whole. The program may continue after it.
    unfinished_reason: Option<String>,
}

impl EventAdapter for OpencodeAdapter {
    fn result_line_types(&self) -> &'static [&'static str] {
        &["text", "text_delta", "step_finish"]
    }

    fn convert_line(&mut self, line: &Value) -> Vec<ProgramEvent> {
        let mut events = Vec::new();
        if self.session_id.is_empty() {
            text_at(line, "/sessionID").clone_into(&mut self.session_id);
            events.extend(session_event(line, "/sessionID"));
        }
        match text_at(line, "/type") {
            "text_delta" if text_at(line, "/sessionID") == self.session_id => {
                events.extend(self.handle_delta(line));
            }
            "text" => events.extend(self.handle_text(line)),
            "reasoning" => events.push(ProgramEvent::Thinking {}),
            "tool_use" => events.extend(tool_events(line)),
            "step_finish" => events.extend(self.handle_step_end(line)),
            "error" => events.push(ProgramEvent::Failed(parse_failure(line))),
            _ => {}
        }
        events
    }

    /// Returns a failure if the answer was cut off. The program retries after such an answer, so a run that ends with
    /// it has no answer.
    fn finish_output(&mut self) -> Vec<ProgramEvent> {
        let message = match &self.unfinished_reason {
            Some(reason) => format!("the model did not finish its answer (`{reason}`)"),
            None if self.is_truncated => {
                "the model's answer was cut off: it has no finish reason".to_owned()
            }
            None => return Vec::new(),
        };
        vec![ProgramEvent::Failed(reported_failure(&message, None))]
    }

    /// Returns true for deltas, which the plugin of the preset writes.
    fn is_omitted_from_raw_output(&self, line: &Value) -> bool {
        text_at(line, "/type") == "text_delta"
    }
}

impl OpencodeAdapter {
    fn handle_delta(&mut self, line: &Value) -> Vec<ProgramEvent> {
        let superseded = self.start_message_if_new(text_at(line, "/part/messageID"));
        let text = std::mem::take(&mut self.trailing_blanks) + text_at(line, "/part/delta");
        let (trimmed, blanks) = text.split_at(text.trim_end().len());
        blanks.clone_into(&mut self.trailing_blanks);
        superseded.into_iter().chain(self.draft.extend(trimmed)).collect()
    }

    fn handle_text(&mut self, line: &Value) -> Vec<ProgramEvent> {
        if let Some(malformed) = malformed_event_unless_text(line, "/part/text") {
            return self.draft.handle_lost_message().into_iter().chain([malformed]).collect();
        }
        let superseded = self.start_message_if_new(text_at(line, "/part/messageID"));
        self.trailing_blanks.clear();
        self.complete_text.push_str(text_at(line, "/part/text"));
        superseded.into_iter().chain(self.draft.replace_text(&self.complete_text)).collect()
    }

    fn start_message_if_new(&mut self, message_id: &str) -> Option<ProgramEvent> {
        if message_id == self.message_id {
            return None;
        }
        message_id.clone_into(&mut self.message_id);
        self.complete_text.clear();
        self.trailing_blanks.clear();
        self.draft.supersede()
    }

    /// Handles the end of a step. Another step follows one with tool calls, and one whose stream ended within the
    /// answer is retried.
    fn handle_step_end(&mut self, line: &Value) -> Vec<ProgramEvent> {
        let reason = text_at(line, "/part/reason");
        let mut events: Vec<ProgramEvent> =
            usage_event(line, &USAGE_POINTERS, false).into_iter().collect();
        if matches!(reason, "" | "unknown") {
            events.push(ProgramEvent::ModelRequestsFailed { count: 1 });
        }
        self.is_truncated = reason == "unknown";
        let is_unfinished = UNFINISHED_REASONS.contains(&reason);
        self.unfinished_reason = is_unfinished.then(|| reason.to_owned());
        if !is_unfinished && !matches!(reason, "" | "tool-calls" | "unknown") {
            events.extend(self.draft.accept());
            events.push(stop_event(reason));
        }
        events
    }
}

fn tool_events(line: &Value) -> Vec<ProgramEvent> {
    let (id, name) = (non_empty_text_at(line, "/part/callID"), text_at(line, "/part/tool"));
    if text_at(line, "/part/state/status") == "error" {
        let error = text_at(line, "/part/state/error");
        let is_denied =
            error.contains("rejected permission") || error.contains("prevents you from");
        let failure_event = tool_event(id, name, ToolStage::Failed);
        return [failure_event].into_iter().chain(is_denied.then(|| denial_event(name))).collect();
    }
    let is_file_write = matches!(name, "write" | "edit" | "patch");
    let path = non_empty_text_at(line, "/part/state/input/filePath").filter(|_| is_file_write);
    let is_new = line.pointer("/part/state/metadata/exists") == Some(&Value::Bool(false));
    let change = if is_new { FileChange::Created } else { FileChange::Modified };
    let change_event = path.map(|path| file_event(path, change));
    [tool_event(id, name, ToolStage::Completed)].into_iter().chain(change_event).collect()
}

fn parse_failure(line: &Value) -> ReportedFailure {
    let message =
        non_empty_text_at(line, "/error/data/message").unwrap_or(text_at(line, "/error/name"));
    let mut reported = reported_failure(message, http_status_at(line, "/error/data/statusCode"));
    reported.retry_after = line.pointer("/error/data/responseHeaders/retry-after").cloned();
    if line.pointer("/error/data/isRetryable") == Some(&Value::Bool(true))
        && reported.category.is_empty()
    {
        "transient".clone_into(&mut reported.category);
    }
    reported
}
