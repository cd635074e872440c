//! Prompts, and the ends of their turns.

use serde_json::{Map, Value, json};

use super::wire::parse_token_usage;
use crate::agent_error::AgentError;
use crate::model::command::{PromptPart, ResourceBody};
use crate::model::ids::SessionKey;
use crate::model::step::{ProtocolStep, TurnOutcome};

/// Returns the content blocks of a prompt.
pub(super) fn content_blocks(parts: &[PromptPart]) -> Vec<Value> {
    parts.iter().map(content_block).collect()
}

fn content_block(part: &PromptPart) -> Value {
    match part {
        PromptPart::Text(text) => json!({"type": "text", "text": text}),
        PromptPart::ResourceLink { uri, name, mime } => {
            let link = json!({"type": "resource_link", "uri": uri, "name": name});
            add_media_type(link, mime.as_deref())
        }
        PromptPart::Resource { uri, mime, body } => {
            let resource = match body {
                ResourceBody::Text(text) => json!({"uri": uri, "text": text}),
                ResourceBody::Base64(bytes) => json!({"uri": uri, "blob": bytes}),
            };
            json!({"type": "resource", "resource": add_media_type(resource, mime.as_deref())})
        }
        PromptPart::Image { mime, base64 } => {
            json!({"type": "image", "mimeType": mime, "data": base64})
        }
        PromptPart::Audio { mime, base64 } => {
            json!({"type": "audio", "mimeType": mime, "data": base64})
        }
    }
}

fn add_media_type(mut value: Value, mime: Option<&str>) -> Value {
    if let (Some(mime), Some(fields)) = (mime, value.as_object_mut()) {
        fields.extend(Map::from_iter([("mimeType".to_owned(), mime.into())]));
    }
    value
}

/// Returns the steps of the response to a prompt.
pub(super) fn turn_end_steps(
    session: SessionKey,
    outcome: Result<Value, AgentError>,
) -> Vec<ProtocolStep> {
    let (turn_outcome, usage, warning) = match outcome {
        Ok(result) => {
            let token_usage = result.get("usage").and_then(parse_token_usage);
            let quota_usage =
                || result.pointer("/_meta/quota/token_count").and_then(parse_token_usage);
            let (turn_outcome, warning) =
                parse_stop_reason(result.get("stopReason").and_then(Value::as_str));
            (turn_outcome, token_usage.or_else(quota_usage), warning)
        }
        Err(error) => {
            let is_authentication_error = error.is_authentication_error();
            let AgentError { code, message } = error;
            (TurnOutcome::Failed { code, message, is_authentication_error }, None, None)
        }
    };
    let warning = warning.map(|text| ProtocolStep::Warning { session, text });
    warning
        .into_iter()
        .chain([ProtocolStep::TurnEnded { session, outcome: turn_outcome, usage }])
        .collect()
}

fn parse_stop_reason(reason: Option<&str>) -> (TurnOutcome, Option<String>) {
    let outcome = match reason {
        Some("end_turn") => TurnOutcome::EndTurn,
        Some("max_tokens") => TurnOutcome::MaxTokens,
        Some("max_turn_requests") => TurnOutcome::MaxTurnRequests,
        Some("refusal") => TurnOutcome::Refusal,
        Some("cancelled") => TurnOutcome::Cancelled,
        other => {
            let warning = format!("unknown stop reason {other:?}");
            return (TurnOutcome::EndTurn, Some(warning));
        }
    };
    (outcome, None)
}
