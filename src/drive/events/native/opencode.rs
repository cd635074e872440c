//! `opencode run --format json`.

use serde_json::Value;

use super::Translate;
use super::draft::Draft;
use super::words::{denied, failing, file, session, some_text, status, stop, text, tool, usage};
use crate::drive::events::line::{Change, Event, Failing, Stage};

const NUMBERS: [(&str, &str); 6] = [
    ("input_tokens", "/part/tokens/input"),
    ("output_tokens", "/part/tokens/output"),
    ("reasoning_tokens", "/part/tokens/reasoning"),
    ("cache_read_tokens", "/part/tokens/cache/read"),
    ("cache_write_tokens", "/part/tokens/cache/write"),
    ("cost_usd", "/part/cost"),
];

/// A run so far.
#[derive(Default)]
pub(super) struct Opencode {
    draft: Draft,
    is_known: bool,
}

impl Translate for Opencode {
    fn read(&mut self, line: &Value) -> Vec<Event> {
        let mut events = Vec::new();
        if !self.is_known {
            events.extend(session(line, "/sessionID"));
            self.is_known = !events.is_empty();
        }
        match text(line, "/type") {
            "step_start" => events.extend(self.draft.put_off()),
            "text" => self.draft.extend(text(line, "/part/text")),
            "reasoning" => events.push(Event::Thinking {}),
            "tool_use" => events.extend(used(line)),
            "step_finish" => events.extend(self.finished(line)),
            "error" => events.push(Event::Failed(trouble(line))),
            _ => {}
        }
        events
    }
}

impl Opencode {
    /// A step that called tools is followed by another, and one that ended nobody knows how is tried
    /// again.
    fn finished(&mut self, line: &Value) -> Vec<Event> {
        let reason = text(line, "/part/reason");
        let mut events: Vec<Event> = usage(line, &NUMBERS, false).into_iter().collect();
        if !matches!(reason, "" | "tool-calls" | "unknown") {
            events.extend(self.draft.release());
            events.push(stop(reason));
        }
        events
    }
}

fn used(line: &Value) -> Vec<Event> {
    let (id, name) = (some_text(line, "/part/callID"), text(line, "/part/tool"));
    if text(line, "/part/state/status") == "error" {
        let why = text(line, "/part/state/error");
        let is_denied = why.contains("rejected permission") || why.contains("prevents you from");
        let failed = tool(id, name, Stage::Failed);
        return [failed].into_iter().chain(is_denied.then(|| denied(name))).collect();
    }
    let writes = matches!(name, "write" | "edit" | "patch");
    let path = some_text(line, "/part/state/input/filePath").filter(|_| writes);
    let is_new = line.pointer("/part/state/metadata/exists") == Some(&Value::Bool(false));
    let change = if is_new { Change::Created } else { Change::Modified };
    let changed = path.map(|path| file(path, change));
    [tool(id, name, Stage::Completed)].into_iter().chain(changed).collect()
}

fn trouble(line: &Value) -> Failing {
    let message = some_text(line, "/error/data/message").unwrap_or(text(line, "/error/name"));
    let mut failing = failing(message, status(line, "/error/data/statusCode"));
    failing.retry_after = line.pointer("/error/data/responseHeaders/retry-after").cloned();
    if line.pointer("/error/data/isRetryable") == Some(&Value::Bool(true))
        && failing.category.is_empty()
    {
        "transient".clone_into(&mut failing.category);
    }
    failing
}
