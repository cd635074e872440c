//! Prompts, and the ends of their turns.

use serde_json::{Map, Value, json};

use super::wire::usage;
use crate::fault::AgentError;
use crate::model::command::{PromptPart, ResourceBody};
use crate::model::ids::SessionKey;
use crate::model::step::{Step, TurnOutcome};

/// Returns the content blocks of a prompt.
pub(super) fn blocks(parts: &[PromptPart]) -> Vec<Value> {
    parts.iter().map(block).collect()
}

fn block(part: &PromptPart) -> Value {
    match part {
        PromptPart::Text(text) => json!({"type": "text", "text": text}),
        PromptPart::ResourceLink { uri, name, mime } => {
            let link = json!({"type": "resource_link", "uri": uri, "name": name});
            with_mime(link, mime.as_deref())
        }
        PromptPart::Resource { uri, mime, body } => {
            let resource = match body {
                ResourceBody::Text(text) => json!({"uri": uri, "text": text}),
                ResourceBody::Base64(bytes) => json!({"uri": uri, "blob": bytes}),
            };
            json!({"type": "resource", "resource": with_mime(resource, mime.as_deref())})
        }
        PromptPart::Image { mime, base64 } => {
            json!({"type": "image", "mimeType": mime, "data": base64})
        }
        PromptPart::Audio { mime, base64 } => {
            json!({"type": "audio", "mimeType": mime, "data": base64})
        }
    }
}

fn with_mime(mut value: Value, mime: Option<&str>) -> Value {
    if let (Some(mime), Some(fields)) = (mime, value.as_object_mut()) {
        fields.extend(Map::from_iter([("mimeType".to_owned(), mime.into())]));
    }
    value
}

/// Returns the steps of the response to a prompt.
pub(super) fn end(session: SessionKey, outcome: Result<Value, AgentError>) -> Vec<Step> {
    let (end, usage, warning) = match outcome {
        Ok(result) => {
            let tokens = result.get("usage").and_then(usage);
            let quota = || result.pointer("/_meta/quota/token_count").and_then(usage);
            let (end, warning) = stop(result.get("stopReason").and_then(Value::as_str));
            (end, tokens.or_else(quota), warning)
        }
        Err(error) => {
            let is_authentication = error.is_authentication();
            let AgentError { code, message } = error;
            (TurnOutcome::Failed { code, message, is_authentication }, None, None)
        }
    };
    let warning = warning.map(|text| Step::Warning { session, text });
    warning.into_iter().chain([Step::TurnEnded { session, end, usage }]).collect()
}

fn stop(reason: Option<&str>) -> (TurnOutcome, Option<String>) {
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
