//! Chat completion of a provider, and its conversion into a reply.

use algonius_actors::model::completion::{ModelReply, ReplyCall};
use algonius_actors::model::observation::telemetry_events::TokenCounts;
use serde::Deserialize;
use serde_json::Value;

/// Chat completion. Unknown members are ignored.
#[derive(Deserialize)]
pub(super) struct ChatCompletion {
    choices: Vec<ChatChoice>,
    #[serde(default)]
    usage: Value,
}

#[derive(Deserialize)]
struct ChatChoice {
    message: ChatMessage,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct ChatMessage {
    /// Text, or a list of parts with texts.
    #[serde(default)]
    content: Value,
    #[serde(default)]
    tool_calls: Option<Vec<ChatToolCall>>,
}

#[derive(Deserialize)]
struct ChatToolCall {
    function: ChatFunction,
}

#[derive(Deserialize)]
struct ChatFunction {
    name: String,
    /// Text of an object, or the object.
    #[serde(default)]
    arguments: Value,
}

impl ChatCompletion {
    /// Returns the first choice as a reply; `None` if there is no choice.
    pub(super) fn into_reply(self) -> Option<ModelReply> {
        let ChatChoice { message, finish_reason } = self.choices.into_iter().next()?;
        let calls = message.tool_calls.unwrap_or_default().into_iter().map(|call| ReplyCall {
            tool: call.function.name,
            arguments: arguments_text(call.function.arguments),
        });
        Some(ModelReply {
            calls: calls.collect(),
            text: content_text(message.content),
            tokens: token_counts(&self.usage),
            is_cut_off: finish_reason.as_deref() == Some("length"),
        })
    }
}

fn content_text(content: Value) -> String {
    match content {
        Value::String(text) => text,
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// Returns arguments as text. Some providers leave the arguments of a call without inputs empty.
fn arguments_text(arguments: Value) -> String {
    match arguments {
        Value::Null => "{}".to_owned(),
        Value::String(text) if text.trim().is_empty() => "{}".to_owned(),
        Value::String(text) => text,
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            arguments.to_string()
        }
    }
}

/// Returns both counts; `None` if one is missing.
fn token_counts(usage: &Value) -> Option<TokenCounts> {
    let count = |name: &str| usage.get(name)?.as_u64();
    Some(TokenCounts { input: count("prompt_tokens")?, output: count("completion_tokens")? })
}
