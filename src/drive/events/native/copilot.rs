//! `copilot --output-format json`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Translate;
use super::draft::Draft;
use super::words::{
    denied, failing, file, items, session, some_text, status, stop, text, tool, usage,
};
use crate::drive::events::line::{Change, Event, Failing, Stage};

/// So many calls are remembered until their results come.
const MOST_CALLS: usize = 1000;

/// Of each call of a model.
const TOKENS: [(&str, &str); 4] = [
    ("input_tokens", "/data/inputTokens"),
    ("output_tokens", "/data/outputTokens"),
    ("cache_read_tokens", "/data/cacheReadTokens"),
    ("cache_write_tokens", "/data/cacheWriteTokens"),
];

/// Of the whole run.
const NUMBERS: [(&str, &str); 2] =
    [("premium_requests", "/usage/premiumRequests"), ("model_ms", "/usage/totalApiDurationMs")];

/// A run so far.
#[derive(Default)]
pub(super) struct Copilot {
    draft: Draft,
    calls: BTreeMap<String, String>,
    /// What it complained of, where it did not say since how it ended.
    trouble: Option<Failing>,
}

impl Translate for Copilot {
    /// Pieces of a message are passed over: the whole of it follows.
    fn read(&mut self, line: &Value) -> Vec<Event> {
        match text(line, "/type") {
            "assistant.message" => match some_text(line, "/data/content") {
                Some(content) => self.draft.offer(content).into_iter().collect(),
                None => Vec::new(),
            },
            "assistant.reasoning" => vec![Event::Thinking {}],
            "assistant.usage" => usage(line, &TOKENS, false).into_iter().collect(),
            "tool.execution_start" => vec![self.call(line)],
            "tool.execution_complete" => self.used(line),
            "session.error" => {
                self.trouble = Some(trouble(line));
                Vec::new()
            }
            "result" => self.result(line),
            _ => Vec::new(),
        }
    }

    /// An error after which nothing came.
    fn end(&mut self) -> Vec<Event> {
        self.trouble.take().map(Event::Failed).into_iter().collect()
    }
}

impl Copilot {
    fn call(&mut self, line: &Value) -> Event {
        let (id, name) = (text(line, "/data/toolCallId"), text(line, "/data/toolName"));
        if self.calls.len() < MOST_CALLS {
            self.calls.insert(id.to_owned(), name.to_owned());
        }
        tool(Some(id), name, Stage::Started)
    }

    fn used(&mut self, line: &Value) -> Vec<Event> {
        let id = text(line, "/data/toolCallId");
        let Some(name) = self.calls.remove(id) else { return Vec::new() };
        if line.pointer("/data/success") == Some(&Value::Bool(true)) {
            let changes = items(line, "/data/fileEdits").iter().map(changed);
            return [tool(Some(id), &name, Stage::Completed)].into_iter().chain(changes).collect();
        }
        let is_denied = text(line, "/data/error/code") == "denied";
        let failed = tool(Some(id), &name, Stage::Failed);
        [failed].into_iter().chain(is_denied.then(|| denied(&name))).collect()
    }

    /// A run that ends well got over what it complained of.
    fn result(&mut self, line: &Value) -> Vec<Event> {
        let trouble = self.trouble.take();
        let mut events: Vec<Event> = session(line, "/sessionId").into_iter().collect();
        events.extend(usage(line, &NUMBERS, false));
        if line.pointer("/exitCode").and_then(Value::as_i64).is_none_or(|code| code == 0) {
            events.extend(self.draft.release());
            events.push(stop("end_turn"));
        } else {
            self.draft.clear();
            let failing = trouble.unwrap_or_else(|| failing("it ended with an error", None));
            events.extend([Event::Failed(failing), stop("error")]);
        }
        events
    }
}

fn trouble(line: &Value) -> Failing {
    let failing = failing(text(line, "/data/message"), status(line, "/data/statusCode"));
    let category = match text(line, "/data/errorType") {
        "authentication" | "authorization" => "authentication",
        "quota" => "quota",
        "rate_limit" => "transient",
        _ => return failing,
    };
    Failing { category: category.to_owned(), ..failing }
}

fn changed(edit: &Value) -> Event {
    let kind = match text(edit, "/kind") {
        "create" => Change::Created,
        "delete" => Change::Deleted,
        _ => Change::Modified,
    };
    file(text(edit, "/path"), kind)
}
