//! Messages of a conversation: texts, tool calls and ends of turns.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::agent_error::AgentError;
use crate::model::command::{PromptPart, ResourceBody};
use crate::model::ids::SessionKey;
use crate::model::step::{ProtocolStep, TextRole, TokenUsage, TurnOutcome, UsageCost};
use crate::model::tool_call::{FileDiff, ToolCall, ToolKind, ToolStatus};
use crate::subject::{add_path, apply_args};

/// Kinds of effect of the tools of Claude Code.
const TOOL_KINDS: &[(&str, ToolKind)] = &[
    ("Bash", ToolKind::Execute),
    ("BashOutput", ToolKind::Execute),
    ("KillShell", ToolKind::Execute),
    ("Read", ToolKind::Read),
    ("NotebookRead", ToolKind::Read),
    ("Edit", ToolKind::Edit),
    ("MultiEdit", ToolKind::Edit),
    ("Write", ToolKind::Edit),
    ("NotebookEdit", ToolKind::Edit),
    ("Glob", ToolKind::Search),
    ("Grep", ToolKind::Search),
    ("WebSearch", ToolKind::Search),
    ("WebFetch", ToolKind::Fetch),
    ("Task", ToolKind::Think),
    ("TodoWrite", ToolKind::Think),
    ("ExitPlanMode", ToolKind::SwitchMode),
];

/// State that turns messages into steps.
#[derive(Debug, Default)]
pub(super) struct MessageTranslator {
    calls: HashMap<String, ToolCall>,
    pub(super) mode: Option<String>,
    /// Id and text of the latest message of the turn.
    latest_message: (Option<String>, String),
}

/// Id of the message for an answer that only the result contains.
const RESULT_MESSAGE_ID: &str = "result";

impl MessageTranslator {
    pub(super) fn end_turn(&mut self) {
        self.calls.clear();
        self.latest_message = Default::default();
    }

    /// Returns the text of a successful result, unless it is the end of the latest message. A document that the agent
    /// has checked against a schema is always the answer.
    pub(super) fn result_text_step(
        &self,
        session: SessionKey,
        result: &Value,
    ) -> Option<ProtocolStep> {
        let is_success = result.get("subtype").and_then(Value::as_str) == Some("success")
            && result.get("is_error") != Some(&Value::Bool(true));
        let document = result.get("structured_output").filter(|document| !document.is_null());
        let text = match document {
            Some(document) => document.to_string(),
            None => {
                let text = result.get("result").and_then(Value::as_str)?;
                let is_already_reported =
                    self.latest_message.1.trim_end().ends_with(text.trim_end());
                (!is_already_reported).then(|| text.to_owned())?
            }
        };
        let message_id = Some(RESULT_MESSAGE_ID.to_owned());
        let role = TextRole::Answer;
        is_success.then_some(ProtocolStep::Text { session, message_id, role, text })
    }

    /// Returns a tool call with its subject, and remembers it.
    pub(super) fn record_call(&mut self, id: &str, name: &str, input: &Value) -> ToolCall {
        let kind = TOOL_KINDS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
        let mut call = ToolCall {
            id: id.to_owned(),
            name: Some(name.to_owned()),
            kind: kind.unwrap_or_default(),
            ..ToolCall::default()
        };
        apply_args(&mut call, input);
        let string_field = |name: &str| input.get(name).and_then(Value::as_str).map(str::to_owned);
        if let Some(path) = string_field("notebook_path") {
            add_path(&mut call, &path);
        }
        let new = string_field("new_string").or_else(|| string_field("content"));
        if let (ToolKind::Edit, Some(path), Some(new)) = (call.kind, string_field("file_path"), new)
        {
            call.diffs.push(FileDiff { path, old: string_field("old_string"), new });
        }
        self.calls.insert(id.to_owned(), call.clone());
        call
    }

    pub(super) fn change_mode(&mut self, session: SessionKey, mode: &str) -> Option<ProtocolStep> {
        let is_new = self.mode.as_deref() != Some(mode);
        self.mode = Some(mode.to_owned());
        is_new.then(|| ProtocolStep::ModeChanged { session, mode: mode.to_owned() })
    }

    /// Returns the steps of a message. Unknown messages have none.
    pub(super) fn translate_message(
        &mut self,
        session: SessionKey,
        kind: &str,
        message: &Value,
    ) -> Vec<ProtocolStep> {
        let content = message.pointer("/message/content").and_then(Value::as_array);
        match kind {
            "assistant" => {
                let message_id = message.pointer("/message/id").and_then(Value::as_str);
                let is_nested = message.get("parent_tool_use_id").is_some_and(|it| !it.is_null());
                let blocks = content.into_iter().flatten();
                blocks
                    .filter_map(|it| self.block_step(session, it, (message_id, is_nested)))
                    .collect()
            }
            "user" => {
                let blocks = content.into_iter().flatten();
                blocks.filter_map(|block| self.tool_result_step(session, block)).collect()
            }
            "system" => {
                let string_field = |name: &str| message.get(name).and_then(Value::as_str);
                if string_field("subtype") == Some("compact_boundary") {
                    return vec![ProtocolStep::HistoryCompacted { session }];
                }
                let mode =
                    string_field("permissionMode").and_then(|mode| self.change_mode(session, mode));
                mode.into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the step of a block of an answer. Texts of a nested agent have none.
    fn block_step(
        &mut self,
        session: SessionKey,
        block: &Value,
        (message_id, is_nested): (Option<&str>, bool),
    ) -> Option<ProtocolStep> {
        let string_field = |name: &str| block.get(name).and_then(Value::as_str);
        let role = match string_field("type")? {
            "text" => TextRole::Answer,
            "thinking" => TextRole::Thought,
            "tool_use" => {
                let input = block.get("input").cloned().unwrap_or_default();
                let call =
                    Box::new(self.record_call(string_field("id")?, string_field("name")?, &input));
                return Some(ProtocolStep::Tool { session, call, is_new: true });
            }
            _ => return None,
        };
        let text = string_field("text")
            .or_else(|| string_field("thinking"))
            .filter(|text| !text.is_empty() && !is_nested)?;
        let message_id = message_id.map(str::to_owned);
        if role == TextRole::Answer {
            let (latest_id, latest_text) = &mut self.latest_message;
            if *latest_id != message_id {
                latest_id.clone_from(&message_id);
                latest_text.clear();
            }
            latest_text.push_str(text);
        }
        Some(ProtocolStep::Text { session, message_id, role, text: text.to_owned() })
    }

    fn tool_result_step(&mut self, session: SessionKey, block: &Value) -> Option<ProtocolStep> {
        let id = block.get("tool_use_id")?.as_str()?;
        let call = self.calls.get_mut(id)?;
        let is_error = block.get("is_error") == Some(&Value::Bool(true));
        call.status = if is_error { ToolStatus::Failed } else { ToolStatus::Completed };
        Some(ProtocolStep::Tool { session, call: Box::new(call.clone()), is_new: false })
    }
}

/// Returns the content block of a part of a prompt. Links and sounds have no block of their own.
pub(super) fn content_block(part: &PromptPart) -> Value {
    let base64_source =
        |mime: &str, data: &str| json!({"type": "base64", "media_type": mime, "data": data});
    match part {
        PromptPart::Text(text) => json!({"type": "text", "text": text}),
        PromptPart::ResourceLink { uri, name, .. } => {
            json!({"type": "text", "text": format!("[{name}]({uri})")})
        }
        PromptPart::Resource { uri, body: ResourceBody::Text(text), .. } => {
            let source = json!({"type": "text", "media_type": "text/plain", "data": text});
            json!({"type": "document", "title": uri, "source": source})
        }
        PromptPart::Resource { uri, mime, body: ResourceBody::Base64(data) } => {
            let source = base64_source(mime.as_deref().unwrap_or("application/pdf"), data);
            json!({"type": "document", "title": uri, "source": source})
        }
        PromptPart::Image { mime, base64 } | PromptPart::Audio { mime, base64 } => {
            json!({"type": "image", "source": base64_source(mime, base64)})
        }
    }
}

/// Returns the end of a turn from its `result` message.
pub(super) fn turn_ended_step(
    session: SessionKey,
    result: &Value,
    is_cancelling: bool,
) -> ProtocolStep {
    let string_field = |name: &str| result.get(name).and_then(Value::as_str);
    let is_error = result.get("is_error") == Some(&Value::Bool(true));
    let turn_outcome = match (string_field("subtype"), string_field("stop_reason")) {
        _ if is_cancelling => TurnOutcome::Cancelled,
        (Some("error_max_turns"), _) => TurnOutcome::MaxTurnRequests,
        (Some("success"), _) if is_error => failed_outcome(result),
        (Some("success"), Some("max_tokens")) => TurnOutcome::MaxTokens,
        (Some("success"), Some("refusal")) => TurnOutcome::Refusal,
        (Some("success"), _) => TurnOutcome::EndTurn,
        _ => failed_outcome(result),
    };
    let number = |path: &str| result.pointer(path).and_then(Value::as_u64);
    let cost = result.get("total_cost_usd").and_then(Value::as_f64);
    let usage = TokenUsage {
        input: number("/usage/input_tokens"),
        output: number("/usage/output_tokens"),
        cached: number("/usage/cache_read_input_tokens"),
        reasoning: number("/usage/output_tokens_details/thinking_tokens"),
        cost: cost.map(|amount| UsageCost { amount, currency: "USD".to_owned() }),
        ..TokenUsage::default()
    };
    ProtocolStep::TurnEnded { session, outcome: turn_outcome, usage: usage.into_non_empty() }
}

fn failed_outcome(result: &Value) -> TurnOutcome {
    let code = result.get("api_error_status").and_then(Value::as_i64).unwrap_or_default();
    let errors = result.get("errors").and_then(Value::as_array).into_iter().flatten();
    let errors = errors.filter_map(Value::as_str).collect::<Vec<_>>().join("; ");
    let text = result.get("result").and_then(Value::as_str).unwrap_or(&errors);
    let error = AgentError { code, message: text.to_owned() };
    let is_authentication_error = error.is_authentication_error();
    TurnOutcome::Failed { code, message: error.message, is_authentication_error }
}
