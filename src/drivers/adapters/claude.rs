//! Events of `claude --output-format stream-json` and of compatible programs (`qwen -o stream-json`).

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::EventAdapter;
use super::draft_message::DraftMessage;
use super::event_line::{FileChange, ProgramEvent, ToolStage};
use super::line_conversion::{
    denial_event, file_event, http_status_at, items_at, malformed_event_unless_text,
    malformed_event_unless_text_or_null, malformed_line_event, non_empty_text_at, reported_failure,
    session_event, stop_event, text_at, tool_event, usage_event,
};

/// Greatest number of calls that are remembered until their results arrive.
const MAX_OPEN_CALLS: usize = 1000;

/// Tools that change a file, with the JSON pointer of its path.
const FILE_TOOLS: [(&str, &str); 8] = [
    ("Write", "/input/file_path"),
    ("Edit", "/input/file_path"),
    ("MultiEdit", "/input/file_path"),
    ("NotebookEdit", "/input/notebook_path"),
    ("write_file", "/input/file_path"),
    ("edit", "/input/file_path"),
    ("replace", "/input/file_path"),
    ("notebook_edit", "/input/notebook_path"),
];

const USAGE_POINTERS: [(&str, &str); 4] = [
    ("input_tokens", "/usage/input_tokens"),
    ("output_tokens", "/usage/output_tokens"),
    ("cache_read_tokens", "/usage/cache_read_input_tokens"),
    ("cache_write_tokens", "/usage/cache_creation_input_tokens"),
];

/// State of a run.
#[derive(Default)]
pub(super) struct ClaudeAdapter {
    draft: DraftMessage,
    /// Id of the message that came in pieces: its whole text follows, and is no other message.
    streamed_message_id: String,
    open_calls: BTreeMap<String, OpenToolCall>,
    /// Ids of denied calls.
    denied_call_ids: Vec<String>,
    /// Latest delay that the provider requested.
    provider_delay: Option<Duration>,
}

/// Shortest delay that comes from the provider: the program's own pauses before its first retries are shorter.
const MIN_PROVIDER_DELAY: Duration = Duration::from_secs(5);

/// Call of a tool.
struct OpenToolCall {
    tool: String,
    path: Option<String>,
}

impl EventAdapter for ClaudeAdapter {
    fn result_line_types(&self) -> &'static [&'static str] {
        &["assistant", "stream_event", "result"]
    }

    fn convert_line(&mut self, line: &Value) -> Vec<ProgramEvent> {
        match (text_at(line, "/type"), text_at(line, "/subtype")) {
            ("system", "init") => session_event(line, "/session_id").into_iter().collect(),
            ("system", "permission_denied") => self
                .report_denial(text_at(line, "/tool_use_id"), text_at(line, "/tool_name"))
                .into_iter()
                .collect(),
            ("system", "api_retry") => self.handle_retry(line),
            ("assistant", _) => self.handle_message(line),
            ("stream_event", _) => self.handle_stream_event(line),
            ("user", _) => self.handle_tool_results(line),
            ("result", _) => self.handle_result(line),
            _ => Vec::new(),
        }
    }

    fn is_omitted_from_raw_output(&self, line: &Value) -> bool {
        text_at(line, "/type") == "stream_event"
    }
}

impl ClaudeAdapter {
    /// Handles an event of the stream: the start, a piece or the end of a message. A message that starts anew, as
    /// after a broken stream, supersedes the latest.
    fn handle_stream_event(&mut self, line: &Value) -> Vec<ProgramEvent> {
        if !is_from_main_agent(line) {
            return Vec::new();
        }
        match text_at(line, "/event/type") {
            "message_start" => {
                text_at(line, "/event/message/id").clone_into(&mut self.streamed_message_id);
                self.draft.supersede().into_iter().collect()
            }
            "content_block_start" if text_at(line, "/event/content_block/type") == "text" => {
                let superseded = self.draft.supersede();
                let draft_events = self.draft.extend(text_at(line, "/event/content_block/text"));
                superseded.into_iter().chain(draft_events).collect()
            }
            "content_block_delta" => self.draft.extend(text_at(line, "/event/delta/text")),
            "message_stop" => {
                self.draft.mark_complete();
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Handles a whole message. Text of a subagent is not the agent's own, and an error is reported again at the end.
    fn handle_message(&mut self, line: &Value) -> Vec<ProgramEvent> {
        let is_error = line.pointer("/is_api_error_message") == Some(&Value::Bool(true));
        let is_new = self.streamed_message_id.is_empty()
            || self.streamed_message_id != text_at(line, "/message/id");
        let is_new_answer = is_from_main_agent(line) && !is_error && is_new;
        if is_from_main_agent(line) && !is_new {
            self.draft.mark_complete(); // The whole message follows its pieces.
        }
        let mut events = Vec::new();
        match line.pointer("/message/content") {
            Some(Value::String(text)) if is_new_answer => {
                events.extend(self.draft.set_whole_message(text));
            }
            Some(Value::String(_) | Value::Array(_)) => {}
            None | Some(Value::Null) if !is_new_answer => {}
            None | Some(_) => {
                events.extend(self.draft.handle_lost_message());
                events.push(malformed_line_event(line));
            }
        }
        for block in items_at(line, "/message/content") {
            match text_at(block, "/type") {
                "text" if is_new_answer => {
                    if malformed_event_unless_text(block, "/text").is_some() {
                        events.extend(self.draft.handle_lost_message());
                        events.push(malformed_line_event(line));
                    }
                    events.extend(self.draft.set_whole_message(text_at(block, "/text")));
                }
                "thinking" | "redacted_thinking" => events.push(ProgramEvent::Thinking {}),
                "tool_use" => events.push(self.handle_call(block)),
                _ => {}
            }
        }
        events
    }

    /// Handles a retry that the program makes by itself, after a pause.
    fn handle_retry(&mut self, line: &Value) -> Vec<ProgramEvent> {
        let delay = line.pointer("/retry_delay_ms").and_then(Value::as_f64).unwrap_or_default();
        let delay = Duration::try_from_secs_f64(delay / 1000.0).unwrap_or_default();
        self.provider_delay = Some(delay).filter(|delay| *delay >= MIN_PROVIDER_DELAY);
        vec![ProgramEvent::ModelRequestsFailed { count: 1 }]
    }

    fn handle_call(&mut self, block: &Value) -> ProgramEvent {
        let (id, name) = (text_at(block, "/id"), text_at(block, "/name"));
        let pointer = FILE_TOOLS
            .iter()
            .find(|(tool_name, _)| *tool_name == name)
            .map(|(_, pointer)| *pointer);
        let path =
            pointer.and_then(|pointer| non_empty_text_at(block, pointer)).map(ToOwned::to_owned);
        // A call without a result is never removed, so their number is limited.
        if self.open_calls.len() < MAX_OPEN_CALLS {
            self.open_calls.insert(id.to_owned(), OpenToolCall { tool: name.to_owned(), path });
        }
        tool_event(Some(id), name, ToolStage::Started)
    }

    fn handle_tool_results(&mut self, line: &Value) -> Vec<ProgramEvent> {
        let mut events = Vec::new();
        for block in items_at(line, "/message/content") {
            let id = text_at(block, "/tool_use_id");
            let Some(OpenToolCall { tool: name, path }) = self.open_calls.remove(id) else {
                continue;
            };
            let has_failed = block.pointer("/is_error") == Some(&Value::Bool(true));
            let stage = if has_failed { ToolStage::Failed } else { ToolStage::Completed };
            events.push(tool_event(Some(id), &name, stage));
            if let Some(path) = path.filter(|_| !has_failed) {
                let is_new = text_at(line, "/tool_use_result/type") == "create";
                let change = if is_new { FileChange::Created } else { FileChange::Modified };
                events.push(file_event(&path, change));
            }
        }
        events
    }

    /// Reports each denied call once, even if the program reports it several times.
    fn report_denial(&mut self, id: &str, name: &str) -> Option<ProgramEvent> {
        if self.denied_call_ids.iter().any(|known| known == id)
            || self.denied_call_ids.len() >= MAX_OPEN_CALLS
        {
            return None;
        }
        self.denied_call_ids.push(id.to_owned());
        Some(denial_event(name))
    }

    /// Handles the result.
    fn handle_result(&mut self, line: &Value) -> Vec<ProgramEvent> {
        let mut events: Vec<ProgramEvent> =
            session_event(line, "/session_id").into_iter().collect();
        events.extend(usage_event(line, &USAGE_POINTERS, false));
        // The total cost continues to count when a session is resumed.
        events.extend(usage_event(line, &[("cost_usd", "/total_cost_usd")], true));
        for denial in items_at(line, "/permission_denials") {
            events.extend(
                self.report_denial(text_at(denial, "/tool_use_id"), text_at(denial, "/tool_name")),
            );
        }
        events.extend(self.handle_outcome(line));
        events.push(stop_event(
            non_empty_text_at(line, "/stop_reason").unwrap_or(text_at(line, "/subtype")),
        ));
        events
    }
}

impl ClaudeAdapter {
    /// Handles the outcome in a result. The subtype is `success` for some errors too.
    fn handle_outcome(&mut self, line: &Value) -> Vec<ProgramEvent> {
        let is_error = line.pointer("/is_error") == Some(&Value::Bool(true));
        if is_error || text_at(line, "/subtype").starts_with("error") {
            return self.handle_failure(line);
        }
        match text_at(line, "/stop_reason") {
            "max_tokens" => {
                let message = "the model reached its limit of tokens";
                return vec![ProgramEvent::Failed(reported_failure(message, None))];
            }
            "refusal" => {
                let message = "the model refused to answer".to_owned();
                return vec![ProgramEvent::Rejected { message }];
            }
            _ => {}
        }
        // With a schema of the answer, this is the document that the program has checked.
        let document = line.pointer("/structured_output").filter(|document| !document.is_null());
        let document = document.map(Value::to_string);
        if let Some(answer) = document.as_deref().or_else(|| non_empty_text_at(line, "/result")) {
            let mut events = self.draft.accept_text(answer);
            events.push(ProgramEvent::WholeAnswerRepeated);
            return events;
        }
        let malformed = malformed_event_unless_text_or_null(line, "/result");
        malformed.into_iter().chain(self.draft.accept_or_fail()).collect()
    }

    fn handle_failure(&mut self, line: &Value) -> Vec<ProgramEvent> {
        let mut events = Vec::new();
        let mut failure =
            reported_failure(error_message(line), http_status_at(line, "/api_error_status"));
        if failure.status.is_some() {
            // The program retries no more, so no line about a retry has counted this request.
            events.push(ProgramEvent::ModelRequestsFailed { count: 1 });
            // The final error contains no delay, so the delay of the last retry is used.
            failure.retry_after =
                self.provider_delay.take().map(|delay| delay.as_secs_f64().into());
        }
        events.push(ProgramEvent::Failed(failure));
        events
    }
}

/// Returns true if a line is about the agent itself, and not about a subagent.
fn is_from_main_agent(line: &Value) -> bool {
    line.pointer("/parent_tool_use_id").is_none_or(Value::is_null)
}

fn error_message(line: &Value) -> &str {
    let pointers = ["/result", "/error/message", "/errors/0", "/api_error", "/subtype"];
    pointers.iter().find_map(|pointer| non_empty_text_at(line, pointer)).unwrap_or_default()
}
