//! Events of `copilot --output-format json`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::EventAdapter;
use super::draft_message::DraftMessage;
use super::event_line::{FileChange, ProgramEvent, ReportedFailure, ToolStage};
use super::line_conversion::{
    denial_event, file_event, http_status_at, items_at, malformed_event_unless_text,
    malformed_event_unless_text_or_null, non_empty_text_at, reported_failure, session_event,
    stop_event, text_at, tool_event, usage_event,
};

/// Greatest number of calls that are remembered until their results arrive.
const MAX_OPEN_CALLS: usize = 1000;

/// Counters of each model call.
const CALL_USAGE_POINTERS: [(&str, &str); 4] = [
    ("input_tokens", "/data/inputTokens"),
    ("output_tokens", "/data/outputTokens"),
    ("cache_read_tokens", "/data/cacheReadTokens"),
    ("cache_write_tokens", "/data/cacheWriteTokens"),
];

/// Same counters in its telemetry.
const TELEMETRY_USAGE_ATTRIBUTES: [(&str, &str); 4] = [
    ("input_tokens", "gen_ai.usage.input_tokens"),
    ("output_tokens", "gen_ai.usage.output_tokens"),
    ("cache_read_tokens", "gen_ai.usage.cache_read.input_tokens"),
    ("cache_write_tokens", "gen_ai.usage.cache_creation.input_tokens"),
];

/// Counters of the whole run.
const RUN_USAGE_POINTERS: [(&str, &str); 2] =
    [("premium_requests", "/usage/premiumRequests"), ("model_ms", "/usage/totalApiDurationMs")];

/// State of a run.
#[derive(Default)]
pub(super) struct CopilotAdapter {
    draft: DraftMessage,
    open_calls: BTreeMap<String, String>,
    /// Latest error that no result has followed.
    latest_failure: Option<ReportedFailure>,
}

impl EventAdapter for CopilotAdapter {
    fn result_line_types(&self) -> &'static [&'static str] {
        &["assistant.message", "assistant.message_delta", "result"]
    }

    fn convert_line(&mut self, line: &Value) -> Vec<ProgramEvent> {
        match text_at(line, "/type") {
            "assistant.message_start" => self.draft.supersede().into_iter().collect(),
            "assistant.message_delta" => self.draft.extend(text_at(line, "/data/deltaContent")),
            "assistant.message" => match non_empty_text_at(line, "/data/content") {
                Some(content) => self.draft.set_whole_message(content),
                // A message that only calls tools needs no text.
                None if items_at(line, "/data/toolRequests").is_empty() => {
                    self.handle_message_without_text(line)
                }
                None => {
                    malformed_event_unless_text_or_null(line, "/data/content").into_iter().collect()
                }
            },
            "assistant.reasoning" => vec![ProgramEvent::Thinking {}],
            "assistant.usage" => {
                usage_event(line, &CALL_USAGE_POINTERS, false).into_iter().collect()
            }
            "span" if text_at(line, "/name").starts_with("chat ") => {
                telemetry_usage_event(line).into_iter().collect()
            }
            "tool.execution_start" => vec![self.handle_call(line)],
            "tool.execution_complete" => self.handle_tool_result(line),
            "model.call_failure" => vec![ProgramEvent::ModelRequestsFailed { count: 1 }],
            "session.error" => {
                // The program may recover from the error, and then its result is a success.
                self.latest_failure = Some(session_failure(line));
                Vec::new()
            }
            "result" => self.handle_result(line),
            _ => Vec::new(),
        }
    }

    /// Returns the failure for an error after which nothing came.
    fn finish_output(&mut self) -> Vec<ProgramEvent> {
        self.latest_failure.take().map(ProgramEvent::Failed).into_iter().collect()
    }

    /// Returns true for deltas and telemetry. An event reports the useful part of the telemetry.
    fn is_omitted_from_raw_output(&self, line: &Value) -> bool {
        let kind = text_at(line, "/type");
        kind.ends_with("_delta") || matches!(kind, "span" | "metric")
    }
}

impl CopilotAdapter {
    fn handle_message_without_text(&mut self, line: &Value) -> Vec<ProgramEvent> {
        let Some(malformed) = malformed_event_unless_text(line, "/data/content") else {
            return Vec::new();
        };
        self.draft.handle_lost_message().into_iter().chain([malformed]).collect()
    }

    fn handle_call(&mut self, line: &Value) -> ProgramEvent {
        let (id, name) = (text_at(line, "/data/toolCallId"), text_at(line, "/data/toolName"));
        // A call without a result is never removed, so their number is limited.
        if self.open_calls.len() < MAX_OPEN_CALLS {
            self.open_calls.insert(id.to_owned(), name.to_owned());
        }
        tool_event(Some(id), name, ToolStage::Started)
    }

    fn handle_tool_result(&mut self, line: &Value) -> Vec<ProgramEvent> {
        let id = text_at(line, "/data/toolCallId");
        let Some(name) = self.open_calls.remove(id) else { return Vec::new() };
        if line.pointer("/data/success") == Some(&Value::Bool(true)) {
            let changes = items_at(line, "/data/fileEdits").iter().map(file_change_event);
            return [tool_event(Some(id), &name, ToolStage::Completed)]
                .into_iter()
                .chain(changes)
                .collect();
        }
        let is_denied = text_at(line, "/data/error/code") == "denied";
        let failure_event = tool_event(Some(id), &name, ToolStage::Failed);
        [failure_event].into_iter().chain(is_denied.then(|| denial_event(&name))).collect()
    }

    /// Handles the result. A run that ends well has recovered from its errors.
    fn handle_result(&mut self, line: &Value) -> Vec<ProgramEvent> {
        let failure = self.latest_failure.take();
        let mut events: Vec<ProgramEvent> = session_event(line, "/sessionId").into_iter().collect();
        events.extend(usage_event(line, &RUN_USAGE_POINTERS, false));
        let exit_code = line.pointer("/exitCode").filter(|code| !code.is_null());
        if exit_code.is_none_or(|code| code.as_i64() == Some(0)) {
            events.extend(self.draft.accept_or_fail());
            events.push(stop_event("end_turn"));
        } else {
            let reported =
                failure.unwrap_or_else(|| reported_failure("it ended with an error", None));
            events.extend([ProgramEvent::Failed(reported), stop_event("error")]);
        }
        events
    }
}

/// Returns the usage of a model call from its telemetry: a line of its own if the preset sends it to the output.
fn telemetry_usage_event(line: &Value) -> Option<ProgramEvent> {
    let counters = TELEMETRY_USAGE_ATTRIBUTES.iter().filter_map(|(name, attribute)| {
        Some(((*name).to_owned(), line.pointer("/attributes")?.get(attribute)?.clone()))
    });
    let fields: Map<String, Value> = counters.filter(|(_, value)| value.is_number()).collect();
    (!fields.is_empty()).then_some(ProgramEvent::Usage { cumulative: false, fields })
}

fn session_failure(line: &Value) -> ReportedFailure {
    let failure =
        reported_failure(text_at(line, "/data/message"), http_status_at(line, "/data/statusCode"));
    let category = match text_at(line, "/data/errorType") {
        "authentication" | "authorization" => "authentication",
        "quota" => "quota",
        "rate_limit" => "rate_limit",
        _ => return failure,
    };
    ReportedFailure { category: category.to_owned(), ..failure }
}

fn file_change_event(edit: &Value) -> ProgramEvent {
    let kind = match text_at(edit, "/kind") {
        "create" => FileChange::Created,
        "delete" => FileChange::Deleted,
        _ => FileChange::Modified,
    };
    file_event(text_at(edit, "/path"), kind)
}
