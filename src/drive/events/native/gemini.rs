//! `gemini --output-format stream-json`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Translate;
use super::words::{denied, failing, file, session, some_text, stop, text, tool, usage};
use crate::drive::events::line::{Change, Event, Stage};

/// So many calls are remembered until their results come.
const MOST_CALLS: usize = 1000;

const NUMBERS: [(&str, &str); 3] = [
    ("input_tokens", "/stats/input_tokens"),
    ("output_tokens", "/stats/output_tokens"),
    ("cache_read_tokens", "/stats/cached"),
];

/// A run so far.
#[derive(Default)]
pub(super) struct Gemini {
    /// The message that grows.
    message: String,
    calls: BTreeMap<String, (String, Option<String>)>,
    /// What it complained of last, where it did not say since how it ended.
    trouble: Option<String>,
}

impl Translate for Gemini {
    fn read(&mut self, line: &Value) -> Vec<Event> {
        let kind = text(line, "/type");
        if kind != "message" {
            self.message.clear();
        }
        match kind {
            "init" => session(line, "/session_id").into_iter().collect(),
            "message" if text(line, "/role") == "assistant" => {
                self.said(line).into_iter().collect()
            }
            "tool_use" => vec![self.call(line)],
            "tool_result" => self.used(line),
            "error" if text(line, "/severity") != "warning" => {
                self.trouble = some_text(line, "/message").map(ToOwned::to_owned);
                Vec::new()
            }
            "result" => self.result(line),
            _ => Vec::new(),
        }
    }

    /// An error after which nothing came.
    fn end(&mut self) -> Vec<Event> {
        let trouble = self.trouble.take();
        trouble.map(|message| Event::Failed(failing(&message, None))).into_iter().collect()
    }
}

impl Gemini {
    /// All that it says is its answer. A whole message that came in pieces before adds nothing.
    fn said(&mut self, line: &Value) -> Option<Event> {
        let content = some_text(line, "/content")?;
        let is_piece = line.pointer("/delta") == Some(&Value::Bool(true));
        if !is_piece && content == self.message {
            return None;
        }
        self.message.push_str(content);
        Some(Event::Text { text: content.to_owned() })
    }

    fn call(&mut self, line: &Value) -> Event {
        let (id, name) = (text(line, "/tool_id"), text(line, "/tool_name"));
        let writes = matches!(name, "write_file" | "replace" | "edit");
        let path = some_text(line, "/parameters/file_path").filter(|_| writes);
        if self.calls.len() < MOST_CALLS {
            self.calls.insert(id.to_owned(), (name.to_owned(), path.map(ToOwned::to_owned)));
        }
        tool(Some(id), name, Stage::Started)
    }

    /// What it may not do is not even offered to the model: then there is no such tool.
    fn used(&mut self, line: &Value) -> Vec<Event> {
        let id = text(line, "/tool_id");
        let Some((name, path)) = self.calls.remove(id) else { return Vec::new() };
        if text(line, "/status") != "error" {
            let changed = path.map(|path| file(&path, Change::Modified));
            return [tool(Some(id), &name, Stage::Completed)].into_iter().chain(changed).collect();
        }
        let why = text(line, "/error/type");
        let signs = ["not_registered", "denied", "policy", "permission"];
        let is_denied = signs.iter().any(|sign| why.contains(sign))
            || text(line, "/error/message").starts_with("Access denied");
        let failed = tool(Some(id), &name, Stage::Failed);
        [failed].into_iter().chain(is_denied.then(|| denied(&name))).collect()
    }

    fn result(&mut self, line: &Value) -> Vec<Event> {
        let trouble = self.trouble.take();
        let mut events: Vec<Event> = usage(line, &NUMBERS, false).into_iter().collect();
        if text(line, "/status") == "success" {
            events.push(stop("end_turn"));
            return events;
        }
        let told = some_text(line, "/error/message").map(ToOwned::to_owned);
        let message = told.or(trouble).unwrap_or_default();
        events.extend([Event::Failed(failing(&message, None)), stop("error")]);
        events
    }
}
