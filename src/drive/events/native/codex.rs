//! `codex exec --json`.

use serde_json::Value;

use super::Translate;
use super::draft::Draft;
use super::words::{denied, failing, file, items, session, some_text, stop, text, tool, usage};
use crate::drive::events::line::{Change, Event, Stage};

const NUMBERS: [(&str, &str); 5] = [
    ("input_tokens", "/usage/input_tokens"),
    ("output_tokens", "/usage/output_tokens"),
    ("cache_read_tokens", "/usage/cached_input_tokens"),
    ("cache_write_tokens", "/usage/cache_write_input_tokens"),
    ("reasoning_tokens", "/usage/reasoning_output_tokens"),
];

/// A run so far.
#[derive(Default)]
pub(super) struct Codex {
    draft: Draft,
    /// What it complained of last, where it did not say since how it ended.
    trouble: Option<String>,
}

impl Translate for Codex {
    fn read(&mut self, line: &Value) -> Vec<Event> {
        match text(line, "/type") {
            "thread.started" => session(line, "/thread_id").into_iter().collect(),
            "item.started" => begun(line).into_iter().collect(),
            "item.completed" => self.item(line),
            "error" => {
                self.trouble = some_text(line, "/message").map(ToOwned::to_owned);
                Vec::new()
            }
            "turn.failed" => self.failed(text(line, "/error/message")),
            "turn.completed" => self.completed(line),
            _ => Vec::new(),
        }
    }

    /// An error after which nothing came.
    fn end(&mut self) -> Vec<Event> {
        let trouble = self.trouble.take();
        trouble.map(|message| Event::Failed(failing(&message, None))).into_iter().collect()
    }
}

impl Codex {
    /// An item of the type `error` is a warning.
    fn item(&mut self, line: &Value) -> Vec<Event> {
        let kind = text(line, "/item/type");
        match kind {
            "agent_message" => self.draft.offer(text(line, "/item/text")).into_iter().collect(),
            "reasoning" => vec![Event::Thinking {}],
            "file_change" if text(line, "/item/status") == "completed" => {
                items(line, "/item/changes").iter().map(changed).collect()
            }
            _ => ended(line),
        }
    }

    fn failed(&mut self, message: &str) -> Vec<Event> {
        let trouble = self.trouble.take().unwrap_or_default();
        let message = if message.is_empty() { &trouble } else { message };
        vec![Event::Failed(failing(message, None)), stop("failed")]
    }

    /// What it counts, it counts since the thread began.
    fn completed(&mut self, line: &Value) -> Vec<Event> {
        self.trouble = None;
        let counted = usage(line, &NUMBERS, true);
        counted.into_iter().chain(self.draft.release()).chain([stop("end_turn")]).collect()
    }
}

/// The tool of an item, where it is one.
fn name(line: &Value) -> Option<String> {
    match text(line, "/item/type") {
        "command_execution" => Some("shell".to_owned()),
        "mcp_tool_call" => {
            Some(format!("{}.{}", text(line, "/item/server"), text(line, "/item/tool")))
        }
        kind @ ("web_search" | "collab_tool_call" | "file_change") => Some(kind.to_owned()),
        _ => None,
    }
}

fn begun(line: &Value) -> Option<Event> {
    Some(tool(some_text(line, "/item/id"), &name(line)?, Stage::Started))
}

fn ended(line: &Value) -> Vec<Event> {
    let Some(name) = name(line) else { return Vec::new() };
    let stage = match text(line, "/item/status") {
        "failed" | "declined" => Stage::Failed,
        _ => Stage::Completed,
    };
    let is_denied = text(line, "/item/status") == "declined";
    let used = tool(some_text(line, "/item/id"), &name, stage);
    [used].into_iter().chain(is_denied.then(|| denied(&name))).collect()
}

fn changed(change: &Value) -> Event {
    let kind = match text(change, "/kind") {
        "add" => Change::Created,
        "delete" => Change::Deleted,
        _ => Change::Modified,
    };
    file(text(change, "/path"), kind)
}
