//! Events of `codex exec --json`.

use serde_json::Value;

use super::EventAdapter;
use super::draft_message::DraftMessage;
use super::event_line::{FileChange, ProgramEvent, ToolStage};
use super::line_conversion::{
    denial_event, file_event, items_at, malformed_event_unless_text, non_empty_text_at,
    reported_failure, session_event, stop_event, text_at, tool_event, usage_event,
};

const USAGE_POINTERS: [(&str, &str); 5] = [
    ("input_tokens", "/usage/input_tokens"),
    ("output_tokens", "/usage/output_tokens"),
    ("cache_read_tokens", "/usage/cached_input_tokens"),
    ("cache_write_tokens", "/usage/cache_write_input_tokens"),
    ("reasoning_tokens", "/usage/reasoning_output_tokens"),
];

/// State of a run.
#[derive(Default)]
pub(super) struct CodexAdapter {
    draft: DraftMessage,
    /// Latest error message that no end of a turn has followed.
    latest_error: Option<String>,
}

impl EventAdapter for CodexAdapter {
    fn result_line_types(&self) -> &'static [&'static str] {
        &["item.completed", "turn.completed", "turn.failed"]
    }

    fn convert_line(&mut self, line: &Value) -> Vec<ProgramEvent> {
        match text_at(line, "/type") {
            "thread.started" => session_event(line, "/thread_id").into_iter().collect(),
            "item.started" => tool_start_event(line).into_iter().collect(),
            "item.completed" => self.handle_item(line),
            "error" => {
                // The program may reconnect, so the error is a failure only if the turn does not complete.
                self.latest_error = non_empty_text_at(line, "/message").map(ToOwned::to_owned);
                reconnect_event(text_at(line, "/message")).into_iter().collect()
            }
            "turn.failed" => self.handle_failure(text_at(line, "/error/message")),
            "turn.completed" => self.handle_completion(line),
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

impl CodexAdapter {
    /// Handles an item. An item of the type `error` is a warning.
    fn handle_item(&mut self, line: &Value) -> Vec<ProgramEvent> {
        let kind = text_at(line, "/item/type");
        match kind {
            "agent_message" => match malformed_event_unless_text(line, "/item/text") {
                Some(malformed) => {
                    self.draft.handle_lost_message().into_iter().chain([malformed]).collect()
                }
                None => self.draft.set_whole_message(text_at(line, "/item/text")),
            },
            "reasoning" => vec![ProgramEvent::Thinking {}],
            "file_change" if text_at(line, "/item/status") == "completed" => {
                items_at(line, "/item/changes").iter().map(file_change_event).collect()
            }
            _ => tool_end_events(line),
        }
    }

    fn handle_failure(&mut self, message: &str) -> Vec<ProgramEvent> {
        let failure = self.latest_error.take().unwrap_or_default();
        // The failed turn may have no message; the error before it has one.
        let message = if message.is_empty() { &failure } else { message };
        vec![ProgramEvent::Failed(reported_failure(message, None)), stop_event("failed")]
    }

    /// Handles a completed turn. Its counters count since the thread began.
    fn handle_completion(&mut self, line: &Value) -> Vec<ProgramEvent> {
        self.latest_error = None;
        let usage_event = usage_event(line, &USAGE_POINTERS, true);
        usage_event.into_iter().chain(self.draft.accept()).chain([stop_event("end_turn")]).collect()
    }
}

/// Number of requests per stream before it is reopened, if the server answers each with an error. The program reports
/// streams only.
const REQUESTS_PER_STREAM: u32 = 5;

/// Returns the failed requests of a stream that is reopened: `Reconnecting... 2/5 (…)`. A broken stream was one
/// request.
fn reconnect_event(message: &str) -> Option<ProgramEvent> {
    let detail = message.strip_prefix("Reconnecting... ")?;
    let was_refused = detail.contains("high demand") || detail.contains("unexpected status");
    Some(ProgramEvent::ModelRequestsFailed {
        count: if was_refused { REQUESTS_PER_STREAM } else { 1 },
    })
}

/// Returns the tool of an item, if it has one.
fn tool_name(line: &Value) -> Option<String> {
    match text_at(line, "/item/type") {
        "command_execution" => Some("shell".to_owned()),
        "mcp_tool_call" => {
            Some(format!("{}.{}", text_at(line, "/item/server"), text_at(line, "/item/tool")))
        }
        kind @ ("web_search" | "collab_tool_call" | "file_change") => Some(kind.to_owned()),
        _ => None,
    }
}

fn tool_start_event(line: &Value) -> Option<ProgramEvent> {
    Some(tool_event(non_empty_text_at(line, "/item/id"), &tool_name(line)?, ToolStage::Started))
}

fn tool_end_events(line: &Value) -> Vec<ProgramEvent> {
    let Some(tool_name) = tool_name(line) else { return Vec::new() };
    let stage = match text_at(line, "/item/status") {
        "failed" | "declined" => ToolStage::Failed,
        _ => ToolStage::Completed,
    };
    let is_denied = text_at(line, "/item/status") == "declined";
    let tool_end = tool_event(non_empty_text_at(line, "/item/id"), &tool_name, stage);
    [tool_end].into_iter().chain(is_denied.then(|| denial_event(&tool_name))).collect()
}

fn file_change_event(change: &Value) -> ProgramEvent {
    let kind = match text_at(change, "/kind") {
        "add" => FileChange::Created,
        "delete" => FileChange::Deleted,
        _ => FileChange::Modified,
    };
    file_event(text_at(change, "/path"), kind)
}
