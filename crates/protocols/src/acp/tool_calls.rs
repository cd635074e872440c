//! Tool calls of a turn, merged from the reports of the agent.

use serde_json::Value;

use super::wire::parse_or_default;
use crate::model::tool_call::{FileDiff, ToolCall, ToolKind, ToolStatus};
use crate::subject::{add_path, apply_args};

/// Tool calls of the turn in progress.
#[derive(Debug, Default)]
pub(super) struct ToolCalls {
    calls: Vec<TrackedCall>,
}

/// Tool call, and whether a step has reported it.
#[derive(Debug)]
struct TrackedCall {
    call: ToolCall,
    has_emitted_step: bool,
}

impl ToolCalls {
    pub(super) fn clear(&mut self) {
        self.calls.clear();
    }

    /// Merges what the agent reports about a call; `None` if the report has no id.
    pub(super) fn merge_report(&mut self, report: &Value) -> Option<ToolCall> {
        let entry = self.find_or_insert(report)?;
        apply_report(&mut entry.call, report);
        Some(entry.call.clone())
    }

    /// Merges a report; returns the call, and whether it is the first report that becomes a step.
    pub(super) fn merge_report_for_step(&mut self, report: &Value) -> Option<(ToolCall, bool)> {
        let call = self.merge_report(report)?;
        let entry = self.find_or_insert(report)?;
        let is_new = !std::mem::replace(&mut entry.has_emitted_step, true);
        Some((call, is_new))
    }

    fn find_or_insert(&mut self, report: &Value) -> Option<&mut TrackedCall> {
        let id = report.get("toolCallId")?.as_str()?;
        // The latest call is the likely one.
        let index = self.calls.iter().rposition(|entry| entry.call.id == id);
        let index = index.unwrap_or_else(|| {
            let call = ToolCall { id: id.to_owned(), ..ToolCall::default() };
            self.calls.push(TrackedCall { call, has_emitted_step: false });
            self.calls.len() - 1
        });
        self.calls.get_mut(index)
    }
}

/// Applies the fields of a report. Missing fields keep their values.
fn apply_report(call: &mut ToolCall, report: &Value) {
    let string_at = |path: &str| report.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let name = string_at("/name").or_else(|| string_at("/_meta/claudeCode/toolName"));
    if let Some(name) = name.or_else(|| string_at("/_meta/toolName")) {
        call.name = Some(name);
    }
    if let Some(title) = string_at("/title") {
        call.title = Some(title);
    }
    if let Some(kind) = string_at("/kind") {
        call.kind = ToolKind::parse(&kind);
    }
    if let Some(status) = string_at("/status").and_then(|status| ToolStatus::parse(&status)) {
        call.status = status;
    }
    if let Some(args) = report.get("rawInput") {
        apply_args(call, args);
    }
    let locations: Vec<Value> = parse_or_default(report.get("locations"));
    for path in locations.iter().filter_map(|location| location.get("path")?.as_str()) {
        add_path(call, path);
    }
    apply_diffs(call, report);
}

/// Replaces the diffs, if the report has some: a report of the result shows its text instead, and the changes of the
/// call remain the same.
fn apply_diffs(call: &mut ToolCall, report: &Value) {
    let content: Vec<Value> = parse_or_default(report.get("content"));
    let parse_diff = |block: &Value| {
        let string_field = |name: &str| block.get(name).and_then(Value::as_str).map(str::to_owned);
        let is_diff = block.get("type").and_then(Value::as_str) == Some("diff");
        is_diff.then(|| {
            string_field("path")
                .map(|path| (path, string_field("oldText"), string_field("newText")))
        })?
    };
    let diffs: Vec<_> = content.iter().filter_map(parse_diff).collect();
    if diffs.is_empty() {
        return;
    }
    call.diffs.clear();
    for (path, old, new) in diffs {
        add_path(call, &path);
        call.diffs.push(FileDiff { path, old, new: new.unwrap_or_default() });
    }
}
