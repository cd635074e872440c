//! Chat completion of a provider, and its conversion into a reply.
//!
//! The members are read one by one, and never as a tree of values: such a tree of a hostile reply needs about a hundred
//! times the memory of its text.

use algonius_actors::model::completion::{ModelReply, RequestedToolCall};
use algonius_actors::model::observation::telemetry_events::TokenCounts;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Text of a JSON value; `None` if the value is absent or null.
type JsonText = Option<Box<RawValue>>;

/// Chat completion. Unknown members are ignored.
#[derive(Deserialize)]
pub(super) struct ChatCompletion {
    choices: Vec<ChatChoice>,
    #[serde(default)]
    usage: JsonText,
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
    content: JsonText,
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
    arguments: JsonText,
}

#[derive(Deserialize)]
struct ChatPart {
    #[serde(default)]
    text: Option<String>,
}

#[derive(Deserialize)]
struct ChatUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
}

impl ChatCompletion {
    /// Returns the first choice as a reply; `None` if there is no choice.
    pub(super) fn into_reply(self) -> Option<ModelReply> {
        let ChatChoice { message, finish_reason } = self.choices.into_iter().next()?;
        let calls =
            message.tool_calls.unwrap_or_default().into_iter().map(|call| RequestedToolCall {
                tool: call.function.name,
                arguments: arguments_text(call.function.arguments),
            });
        Some(ModelReply {
            calls: calls.collect(),
            text: content_text(message.content),
            tokens: token_counts(self.usage),
            is_cut_off: finish_reason.as_deref() == Some("length"),
        })
    }
}

/// Returns the text of a content; a content of another form has none.
fn content_text(content: JsonText) -> String {
    let Some(content) = content else { return String::new() };
    serde_json::from_str(content.get())
        .or_else(|_not_a_text| {
            let parts: Vec<ChatPart> = serde_json::from_str(content.get())?;
            Ok(parts.into_iter().filter_map(|part| part.text).collect())
        })
        .unwrap_or_else(|_: serde_json::Error| String::new())
}

/// Returns arguments as text. Some providers leave the arguments of a call without inputs empty.
fn arguments_text(arguments: JsonText) -> String {
    let Some(arguments) = arguments else { return "{}".to_owned() };
    match serde_json::from_str::<String>(arguments.get()) {
        Ok(text) if text.trim().is_empty() => "{}".to_owned(),
        Ok(text) => text,
        Err(_not_a_text) => arguments.get().to_owned(),
    }
}

/// Returns both counts; `None` if one is missing.
fn token_counts(usage: JsonText) -> Option<TokenCounts> {
    let ChatUsage { prompt_tokens, completion_tokens } = serde_json::from_str(usage?.get()).ok()?;
    Some(TokenCounts { input: prompt_tokens, output: completion_tokens })
}
