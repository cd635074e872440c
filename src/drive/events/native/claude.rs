//! `claude --output-format stream-json`, and what writes like it (`qwen -o stream-json`).

use std::collections::BTreeMap;

use serde_json::Value;

use super::Translate;
use super::draft::Draft;
use super::words::{
    denied, failing, file, items, session, some_text, status, stop, text, tool, usage,
};
use crate::drive::events::line::{Change, Event, Stage};

/// So many calls are remembered until their results come.
const MOST_CALLS: usize = 1000;

/// Tools that change a file, and where they have its path.
const WRITERS: [(&str, &str); 8] = [
    ("Write", "/input/file_path"),
    ("Edit", "/input/file_path"),
    ("MultiEdit", "/input/file_path"),
    ("NotebookEdit", "/input/notebook_path"),
    ("write_file", "/input/file_path"),
    ("edit", "/input/file_path"),
    ("replace", "/input/file_path"),
    ("notebook_edit", "/input/notebook_path"),
];

const NUMBERS: [(&str, &str); 4] = [
    ("input_tokens", "/usage/input_tokens"),
    ("output_tokens", "/usage/output_tokens"),
    ("cache_read_tokens", "/usage/cache_read_input_tokens"),
    ("cache_write_tokens", "/usage/cache_creation_input_tokens"),
];

/// A run so far.
#[derive(Default)]
pub(super) struct Claude {
    draft: Draft,
    calls: BTreeMap<String, Call>,
    /// Ids of calls that were denied.
    denied: Vec<String>,
}

/// A tool in use.
struct Call {
    tool: String,
    path: Option<String>,
}

impl Translate for Claude {
    fn read(&mut self, line: &Value) -> Vec<Event> {
        match (text(line, "/type"), text(line, "/subtype")) {
            ("system", "init") => session(line, "/session_id").into_iter().collect(),
            ("system", "permission_denied") => self
                .deny(text(line, "/tool_use_id"), text(line, "/tool_name"))
                .into_iter()
                .collect(),
            ("assistant", _) => self.assistant(line),
            ("user", _) => self.results(line),
            ("result", _) => self.result(line),
            _ => Vec::new(),
        }
    }
}

impl Claude {
    /// Words of what works for it are none of its own, and an error is told again at the end.
    fn assistant(&mut self, line: &Value) -> Vec<Event> {
        let is_own = line.pointer("/parent_tool_use_id").is_none_or(Value::is_null)
            && line.pointer("/is_api_error_message") != Some(&Value::Bool(true));
        let blocks = items(line, "/message/content").iter();
        let of = |block: &Value| match text(block, "/type") {
            "text" if is_own => self.draft.offer(text(block, "/text")),
            "thinking" | "redacted_thinking" => Some(Event::Thinking {}),
            "tool_use" => Some(self.call(block)),
            _ => None,
        };
        blocks.filter_map(of).collect()
    }

    fn call(&mut self, block: &Value) -> Event {
        let (id, name) = (text(block, "/id"), text(block, "/name"));
        let place = WRITERS.iter().find(|(writer, _)| *writer == name).map(|(_, place)| *place);
        let path = place.and_then(|place| some_text(block, place)).map(ToOwned::to_owned);
        if self.calls.len() < MOST_CALLS {
            self.calls.insert(id.to_owned(), Call { tool: name.to_owned(), path });
        }
        tool(Some(id), name, Stage::Started)
    }

    fn results(&mut self, line: &Value) -> Vec<Event> {
        let mut events = Vec::new();
        for block in items(line, "/message/content") {
            let id = text(block, "/tool_use_id");
            let Some(Call { tool: name, path }) = self.calls.remove(id) else { continue };
            let has_failed = block.pointer("/is_error") == Some(&Value::Bool(true));
            let stage = if has_failed { Stage::Failed } else { Stage::Completed };
            events.push(tool(Some(id), &name, stage));
            if let Some(path) = path.filter(|_| !has_failed) {
                let is_new = text(line, "/tool_use_result/type") == "create";
                let change = if is_new { Change::Created } else { Change::Modified };
                events.push(file(&path, change));
            }
        }
        events
    }

    /// Each call is denied once, however often that is told.
    fn deny(&mut self, id: &str, name: &str) -> Option<Event> {
        if self.denied.iter().any(|known| known == id) || self.denied.len() >= MOST_CALLS {
            return None;
        }
        self.denied.push(id.to_owned());
        Some(denied(name))
    }

    /// The sub-type says `success` of errors too.
    fn result(&mut self, line: &Value) -> Vec<Event> {
        let mut events: Vec<Event> = session(line, "/session_id").into_iter().collect();
        events.extend(usage(line, &NUMBERS, false));
        // It goes on counting where a session is resumed.
        events.extend(usage(line, &[("cost_usd", "/total_cost_usd")], true));
        for denial in items(line, "/permission_denials") {
            events.extend(self.deny(text(denial, "/tool_use_id"), text(denial, "/tool_name")));
        }
        if line.pointer("/is_error") == Some(&Value::Bool(true)) {
            self.draft.clear();
            events.push(Event::Failed(failing(message(line), status(line, "/api_error_status"))));
        } else if let Some(answer) = some_text(line, "/result") {
            self.draft.clear();
            events.push(Event::Text { text: answer.to_owned() });
        } else {
            events.extend(self.draft.release());
        }
        events.push(stop(some_text(line, "/stop_reason").unwrap_or(text(line, "/subtype"))));
        events
    }
}

fn message(line: &Value) -> &str {
    let places = ["/result", "/error/message", "/errors/0", "/api_error", "/subtype"];
    places.iter().find_map(|place| some_text(line, place)).unwrap_or_default()
}
