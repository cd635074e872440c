//! Updates of a session: texts, tool calls, plans, usage and changed settings.

use serde_json::Value;

use super::session::AcpSession;
use super::wire::{ConfigOption, parse_context_usage, parse_or_default, parse_token_usage};
use crate::model::ids::SessionKey;
use crate::model::step::{PlanEntry, ProtocolStep, TextRole};

/// Returns the steps of an update. Unknown kinds of updates have none.
pub(super) fn steps(
    session: &mut AcpSession,
    key: SessionKey,
    update: &Value,
    is_codex: bool,
) -> Vec<ProtocolStep> {
    let kind = update.get("sessionUpdate").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "agent_message_chunk" => text_steps(key, update, TextRole::Answer, is_codex),
        "agent_thought_chunk" => text_steps(key, update, TextRole::Thought, false),
        "tool_call" | "tool_call_update" => match session.calls.merge_for_step(update) {
            Some((call, is_new)) => {
                vec![ProtocolStep::Tool { session: key, call: Box::new(call), is_new }]
            }
            None => vec![ProtocolStep::protocol_error("tool call without an id")],
        },
        "plan" => vec![ProtocolStep::Plan { session: key, entries: plan_entries(update) }],
        "usage_update" => {
            let usage = parse_context_usage(update)
                .map(|usage| ProtocolStep::Usage { session: key, usage });
            usage.into_iter().collect()
        }
        "current_mode_update" => {
            let mode: Option<String> = parse_or_default(update.get("currentModeId"));
            let change = mode.and_then(|mode| session.apply_mode(mode));
            change.map(|change| change.into_step(key)).into_iter().collect()
        }
        "config_option_update" => {
            let reported_options =
                ConfigOption::parse_list(update.get("configOptions")).unwrap_or_default();
            session
                .apply_options(reported_options)
                .into_iter()
                .map(|change| change.into_step(key))
                .collect()
        }
        "compaction_update" => {
            let status: Option<String> = parse_or_default(update.get("status"));
            let is_done = status.is_none_or(|status| status == "completed");
            is_done.then_some(ProtocolStep::Compacted { session: key }).into_iter().collect()
        }
        "notice" => {
            let string_at = |path: &&str| update.pointer(path).and_then(Value::as_str);
            let found = ["/message", "/text", "/content/text"].iter().find_map(string_at);
            let text = found.unwrap_or("notice without text").to_owned();
            vec![ProtocolStep::Warning { session: key, text }]
        }
        _ => Vec::new(),
    }
}

fn text_steps(
    key: SessionKey,
    update: &Value,
    role: TextRole,
    is_codex: bool,
) -> Vec<ProtocolStep> {
    let mut steps = Vec::new();
    let content = update.get("content");
    let string_field =
        |name: &str| content.and_then(|content| content.get(name)).and_then(Value::as_str);
    let message_id: Option<String> = parse_or_default(update.get("messageId"));
    match (string_field("type"), string_field("text")) {
        (Some("text"), Some("")) => {}
        // codex-acp reports warnings as text of no message.
        (Some("text"), Some(text))
            if is_codex && message_id.is_none() && text.starts_with("Warning:") =>
        {
            steps.push(ProtocolStep::Warning { session: key, text: text.trim_end().to_owned() });
        }
        (Some("text"), Some(text)) => {
            steps.push(ProtocolStep::Text {
                session: key,
                message_id,
                role,
                text: text.to_owned(),
            });
        }
        (kind, _) => {
            let text = format!("content of type `{}` is not shown", kind.unwrap_or_default());
            steps.push(ProtocolStep::Warning { session: key, text });
        }
    }
    // qwen reports usage beside an empty text.
    if let Some(usage) = update.pointer("/_meta/usage").and_then(parse_token_usage) {
        steps.push(ProtocolStep::Usage { session: key, usage });
    }
    steps
}

fn plan_entries(update: &Value) -> Vec<PlanEntry> {
    let entries: Vec<Value> = parse_or_default(update.get("entries"));
    let entry = |entry: &Value| {
        let string_field = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
        let status = string_field("status").unwrap_or_else(|| "pending".to_owned());
        PlanEntry {
            content: string_field("content").unwrap_or_default(),
            priority: string_field("priority"),
            status,
        }
    };
    entries.iter().map(entry).collect()
}
