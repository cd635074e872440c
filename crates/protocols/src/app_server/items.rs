//! Items of a turn, its input and its end.

use serde_json::{Value, json};

use super::thread::AppServerThread;
use crate::agent_error::AgentError;
use crate::model::command::{PromptPart, ResourceBody};
use crate::model::ids::SessionKey;
use crate::model::step::{PlanEntry, ProtocolStep, TextRole, TokenUsage, TurnOutcome};
use crate::model::tool_call::{FileDiff, ToolCall, ToolKind, ToolStatus};
use crate::subject::{add_path, apply_args};

/// Returns a part of the input of a turn. The protocol has text and images only.
pub(super) fn input_part(part: &PromptPart) -> Value {
    let text_part = |text: String| json!({"type": "text", "text": text});
    match part {
        PromptPart::Text(it) => text_part(it.clone()),
        PromptPart::ResourceLink { uri, name, .. } => text_part(format!("[{name}]({uri})")),
        PromptPart::Resource { uri, body: ResourceBody::Text(body), .. } => {
            text_part(format!("{uri}:\n{body}"))
        }
        PromptPart::Resource { uri, .. } => text_part(uri.clone()),
        PromptPart::Image { mime, base64 } | PromptPart::Audio { mime, base64 } => {
            json!({"type": "image", "url": format!("data:{mime};base64,{base64}")})
        }
    }
}

/// Returns the end of a turn. `failure` is an error that was reported before it.
pub(super) fn turn_outcome(turn: &Value, failure: Option<Value>) -> TurnOutcome {
    match turn.get("status").and_then(Value::as_str) {
        Some("completed") => TurnOutcome::EndTurn,
        Some("interrupted") => TurnOutcome::Cancelled,
        _ => {
            let error = turn.get("error").filter(|error| !error.is_null()).cloned();
            let error = error.or(failure).unwrap_or_default();
            let is_unauthorized =
                error.get("codexErrorInfo").is_some_and(|it| it == "unauthorized");
            let error = AgentError::from_json(&error);
            let is_authentication_error = is_unauthorized || error.is_authentication_error();
            TurnOutcome::Failed {
                code: error.code,
                message: error.message,
                is_authentication_error,
            }
        }
    }
}

/// Returns the steps of a notification about a thread. Unknown notifications have none.
pub(super) fn apply_notification(
    thread: &mut AppServerThread,
    session: SessionKey,
    method: &str,
    params: &Value,
) -> Vec<ProtocolStep> {
    let string_at = |path: &str| params.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let step = match method {
        "item/agentMessage/delta" => {
            let message_id = string_at("/itemId");
            thread.streamed_message_ids.extend(message_id.clone());
            string_at("/delta").map(|text| ProtocolStep::Text {
                session,
                message_id,
                role: TextRole::Answer,
                text,
            })
        }
        "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta" => {
            let (message_id, role) = (string_at("/itemId"), TextRole::Thought);
            string_at("/delta").map(|text| ProtocolStep::Text { session, message_id, role, text })
        }
        "item/started" | "item/completed" => apply_item(thread, session, params),
        "turn/plan/updated" => Some(ProtocolStep::Plan { session, entries: plan_entries(params) }),
        "thread/tokenUsage/updated" => {
            let usage = parse_token_usage(params);
            thread.usage.clone_from(&usage);
            usage.map(|usage| ProtocolStep::Usage { session, usage })
        }
        "warning" => string_at("/message").map(|text| ProtocolStep::Warning { session, text }),
        "error" if params.get("willRetry") == Some(&Value::Bool(true)) => {
            string_at("/error/message").map(|text| ProtocolStep::Warning { session, text })
        }
        "error" => {
            thread.failure = params.get("error").cloned();
            None
        }
        "thread/compacted" => Some(ProtocolStep::HistoryCompacted { session }),
        "model/rerouted" => {
            thread.model = string_at("/toModel");
            thread.model.clone().map(|model| ProtocolStep::ModelChanged { session, model })
        }
        _ => None,
    };
    step.into_iter()
        .filter(|step| !matches!(step, ProtocolStep::Text { text, .. } if text.is_empty()))
        .collect()
}

fn apply_item(
    thread: &mut AppServerThread,
    session: SessionKey,
    params: &Value,
) -> Option<ProtocolStep> {
    let item = params.get("item")?;
    let id = item.get("id").and_then(Value::as_str)?.to_owned();
    if item.get("type").and_then(Value::as_str) == Some("agentMessage") {
        let text = item.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
        let is_new = !text.is_empty() && thread.streamed_message_ids.insert(id.clone());
        let (message_id, role) = (Some(id), TextRole::Answer);
        return is_new.then_some(ProtocolStep::Text { session, message_id, role, text });
    }
    let call = parse_tool_call(item)?;
    let is_new = thread.reported_call_ids.insert(id.clone());
    thread.calls.insert(id, call.clone());
    Some(ProtocolStep::Tool { session, call: Box::new(call), is_new })
}

/// Returns the tool call of an item; `None` for other items.
fn parse_tool_call(item: &Value) -> Option<ToolCall> {
    let string_field = |name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
    let (name, kind) = match string_field("type")?.as_str() {
        "commandExecution" => ("commandExecution".to_owned(), ToolKind::Execute),
        "fileChange" => ("fileChange".to_owned(), ToolKind::Edit),
        "mcpToolCall" => {
            let string_or_empty = |name: &str| string_field(name).unwrap_or_default();
            (format!("{}/{}", string_or_empty("server"), string_or_empty("tool")), ToolKind::Other)
        }
        "dynamicToolCall" => (string_field("tool").unwrap_or_default(), ToolKind::Other),
        "webSearch" => ("webSearch".to_owned(), ToolKind::Search),
        _ => return None,
    };
    let status = match string_field("status").as_deref() {
        Some("completed") => ToolStatus::Completed,
        Some("failed" | "declined") => ToolStatus::Failed,
        _ => ToolStatus::InProgress,
    };
    let title = string_field("command").or_else(|| string_field("query"));
    let id = string_field("id")?;
    let mut call = ToolCall { id, name: Some(name), title, kind, status, ..ToolCall::default() };
    match item.get("arguments") {
        Some(arguments) => apply_args(&mut call, arguments),
        None => apply_args(&mut call, item),
    }
    for change in item.get("changes").and_then(Value::as_array).into_iter().flatten() {
        let string_or_empty =
            |name: &str| change.get(name).and_then(Value::as_str).unwrap_or_default();
        add_path(&mut call, string_or_empty("path"));
        let (path, new) = (string_or_empty("path").to_owned(), string_or_empty("diff").to_owned());
        call.diffs.push(FileDiff { path, old: None, new });
    }
    Some(call)
}

fn plan_entries(params: &Value) -> Vec<PlanEntry> {
    let entries = params.get("plan").and_then(Value::as_array).into_iter().flatten();
    let entry = |entry: &Value| {
        let string_field = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let status = if string_field("status") == "inProgress" {
            "in_progress"
        } else {
            string_field("status")
        };
        PlanEntry {
            content: string_field("step").to_owned(),
            priority: None,
            status: status.to_owned(),
        }
    };
    entries.map(entry).collect()
}

fn parse_token_usage(params: &Value) -> Option<TokenUsage> {
    let usage = params.get("tokenUsage")?;
    let number = |path: &str| usage.pointer(path).and_then(Value::as_u64);
    let token_usage = TokenUsage {
        input: number("/total/inputTokens"),
        output: number("/total/outputTokens"),
        cached: number("/total/cachedInputTokens"),
        reasoning: number("/total/reasoningOutputTokens"),
        context: number("/last/totalTokens"),
        context_size: number("/modelContextWindow"),
        cost: None,
    };
    token_usage.into_non_empty()
}
