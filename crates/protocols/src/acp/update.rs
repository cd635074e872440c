//! Updates of a session: texts, tool calls, plans, usage and changed settings.

use serde_json::Value;

use super::content_block::{BlockContent, parse_content};
use super::session::AcpSession;
use super::wire::{ConfigOption, parse_context_usage, parse_or_default, parse_token_usage};
use crate::model::ids::SessionKey;
use crate::model::step::{PlanEntry, ProtocolStep, TextRole};

/// Returns the steps of an update. Unknown kinds of updates have none.
pub(super) fn apply_update(
    session: &mut AcpSession,
    key: SessionKey,
    update: &Value,
    is_codex: bool,
) -> Vec<ProtocolStep> {
    let kind = update.get("sessionUpdate").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "agent_message_chunk" => message_chunk_steps(key, update, TextRole::Answer, is_codex),
        "agent_thought_chunk" => message_chunk_steps(key, update, TextRole::Thought, false),
        "tool_call" | "tool_call_update" => match session.calls.merge_report_for_step(update) {
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
            is_done.then_some(ProtocolStep::HistoryCompacted { session: key }).into_iter().collect()
        }
        "notice" => {
            let string_at = |path: &&str| update.pointer(path).and_then(Value::as_str);
            let found = ["/message", "/text", "/content/text"].iter().find_map(string_at);
            let text = found.unwrap_or("notice without text").to_owned();
            vec![ProtocolStep::Warning { session: key, text }]
        }
        "" => {
            let reason = "is an update without a kind".to_owned();
            let lost = || ProtocolStep::ContentLost { reason, text: update.to_string() };
            let is_empty = content_blocks(update).is_empty();
            (!is_empty).then(lost).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the blocks of an update. The protocol has one; some agents write a list.
fn content_blocks(update: &Value) -> &[Value] {
    match update.get("content") {
        Some(Value::Array(blocks)) => blocks.as_slice(),
        Some(block) if !block.is_null() => std::slice::from_ref(block),
        Some(_) | None => &[],
    }
}

fn message_chunk_steps(
    key: SessionKey,
    update: &Value,
    role: TextRole,
    is_codex: bool,
) -> Vec<ProtocolStep> {
    let blocks = content_blocks(update);
    let message_id: Option<String> = parse_or_default(update.get("messageId"));
    let block_step = |block| block_step((key, message_id.clone()), block, role, is_codex);
    let mut steps: Vec<_> = blocks.iter().filter_map(block_step).collect();
    // qwen reports usage beside an empty text.
    if let Some(usage) = update.pointer("/_meta/usage").and_then(parse_token_usage) {
        steps.push(ProtocolStep::Usage { session: key, usage });
    } else if blocks.is_empty() && role == TextRole::Answer {
        let reason = "has no content".to_owned();
        steps.push(ProtocolStep::ContentLost { reason, text: update.to_string() });
    }
    steps
}

/// Returns the step of a block of content; `None` for an empty text. A part of the answer of an unknown form is lost.
fn block_step(
    (session, message_id): (SessionKey, Option<String>),
    block: &Value,
    role: TextRole,
    is_codex: bool,
) -> Option<ProtocolStep> {
    let kind = block.get("type").and_then(Value::as_str);
    match (kind, block.get("text")) {
        (Some("text"), None | Some(Value::Null)) if role != TextRole::Answer => None,
        (Some("text"), Some(Value::String(text))) if text.is_empty() => None,
        // codex-acp reports warnings as text of no message.
        (Some("text"), Some(Value::String(text)))
            if is_codex && message_id.is_none() && text.starts_with("Warning:") =>
        {
            Some(ProtocolStep::Warning { session, text: text.trim_end().to_owned() })
        }
        (Some("text"), Some(Value::String(text))) => {
            Some(ProtocolStep::Text { session, message_id, role, text: text.clone() })
        }
        (None | Some("text" | "image" | "audio" | "resource" | "resource_link"), _)
            if role == TextRole::Answer =>
        {
            Some(match parse_content(block) {
                BlockContent::Deliverable(content) => {
                    ProtocolStep::Content { session, content: Box::new(content) }
                }
                BlockContent::LocalAddress => {
                    let text = "a link to a file of the agent's machine is not shown".to_owned();
                    ProtocolStep::Warning { session, text }
                }
                BlockContent::Unreadable => ProtocolStep::ContentLost {
                    reason: "has a content of unknown form".to_owned(),
                    text: block.to_string(),
                },
            })
        }
        (kind, _) => {
            let text = format!("content of type `{}` is not shown", kind.unwrap_or_default());
            Some(ProtocolStep::Warning { session, text })
        }
    }
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
