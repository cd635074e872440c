//! Chat completion of a provider, and its conversion into a reply.
//!
//! The members are read one by one, and never as a tree of values: such a tree of a hostile reply needs about a hundred
//! times the memory of its text.

use algonius_actors::model::completion::{ModelReply, RequestedToolCall};
use algonius_actors::model::observation::telemetry_events::TokenCounts;
use algonius_protocols::{LineItem, read_json_line};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Text of a JSON value; `None` if the value is absent or null.
type OptionalRawJson = Option<Box<RawValue>>;

/// Chat completion. Unknown members are ignored.
#[derive(Deserialize)]
pub(super) struct ChatCompletion {
    #[serde(default)]
    choices: Option<Vec<ChatChoice>>,
    /// Error that a gateway reports in a successful response.
    #[serde(default)]
    error: OptionalRawJson,
    #[serde(default)]
    usage: OptionalRawJson,
}

/// Reason why a completion is no reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CompletionFault {
    /// The clause follows "it", which is the completion.
    Unusable(&'static str),
    /// The provider reports an error, perhaps with a number.
    ReportedError(Option<i64>),
}

#[derive(Deserialize)]
struct ChatChoice {
    #[serde(default)]
    message: ChatMessage,
    #[serde(default)]
    finish_reason: Option<String>,
    /// Error that a gateway reports beside a part of a reply.
    #[serde(default)]
    error: OptionalRawJson,
}

#[derive(Default, Deserialize)]
struct ChatMessage {
    /// Text, or a list of parts with texts.
    #[serde(default)]
    content: OptionalRawJson,
    #[serde(default)]
    tool_calls: Option<Vec<ChatToolCall>>,
    /// Refusal of the model, in place of the content.
    #[serde(default)]
    refusal: OptionalRawJson,
}

#[derive(Deserialize)]
struct ChatError {
    #[serde(default)]
    code: OptionalRawJson,
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
    arguments: OptionalRawJson,
}

#[derive(Deserialize)]
struct ChatPart {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: OptionalRawJson,
}

#[derive(Deserialize)]
struct ChatUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
}

impl ChatCompletion {
    /// Returns the first choice as a reply.
    ///
    /// # Errors
    /// Fails if there is no choice, or none that can be used.
    pub(super) fn into_reply(self) -> Result<ModelReply, CompletionFault> {
        let missing_choice_clause = match &self.choices {
            Some(_) => "is a chat completion without a choice",
            None => "is not a chat completion",
        };
        let choice = self.choices.into_iter().flatten().next();
        let choice_error = choice.as_ref().and_then(|choice| choice.error.as_ref());
        if let Some(error) = self.error.as_ref().or(choice_error) {
            return Err(reported_fault(error));
        }
        let Some(ChatChoice { message, finish_reason, .. }) = choice else {
            return Err(CompletionFault::Unusable(missing_choice_clause));
        };
        if finish_reason.as_deref() == Some("error") {
            return Err(CompletionFault::ReportedError(None));
        }
        if finish_reason.as_deref() == Some("content_filter") {
            return Err(CompletionFault::Unusable("was stopped by a content filter"));
        }
        let calls =
            message.tool_calls.unwrap_or_default().into_iter().map(|call| RequestedToolCall {
                tool: call.function.name,
                arguments: arguments_text(call.function.arguments),
            });
        let calls: Vec<_> = calls.collect();
        let has_refusal = message.refusal.is_some_and(|refusal| refusal.get() != "\"\"")
            || has_refusal_part(message.content.as_deref());
        let text = match content_text(message.content) {
            Some(text) if text.is_empty() && calls.is_empty() && has_refusal => {
                return Err(CompletionFault::Unusable("is a refusal of the model"));
            }
            None if calls.is_empty() => {
                return Err(CompletionFault::Unusable("has a content that cannot be read"));
            }
            text => text.unwrap_or_default(),
        };
        let is_cut_off = finish_reason.as_deref() == Some("length");
        Ok(ModelReply { calls, text, tokens: token_counts(self.usage), is_cut_off })
    }
}

/// Returns the fault for an error of the provider. Its text may contain input, so it is not read.
fn reported_fault(error: &RawValue) -> CompletionFault {
    let code = serde_json::from_str::<ChatError>(error.get()).ok().and_then(|error| error.code);
    CompletionFault::ReportedError(code.and_then(|code| serde_json::from_str(code.get()).ok()))
}

/// Returns the text of a content, which is empty if there is no content; `None` for a content of another form.
fn content_text(content: OptionalRawJson) -> Option<String> {
    let Some(content) = content else { return Some(String::new()) };
    let content = content.get();
    if content.starts_with('"') {
        return serde_json::from_str(content).ok().or_else(|| decode_lossy_text(content));
    }
    let parts: Vec<ChatPart> = serde_json::from_str(content).ok()?;
    Some(parts.into_iter().filter_map(|part| part.text).collect())
}

/// Returns true if a part of a content is a refusal.
fn has_refusal_part(content: Option<&RawValue>) -> bool {
    let parts =
        content.and_then(|content| serde_json::from_str::<Vec<ChatPart>>(content.get()).ok());
    parts.into_iter().flatten().any(|part| part.refusal.is_some())
}

/// Returns a text with an unpaired surrogate, which becomes U+FFFD as in the lines of programs.
fn decode_lossy_text(content: &str) -> Option<String> {
    let items = read_json_line(format!("{{\"content\":{content}}}").as_bytes());
    let [LineItem::Object(object)] = <[LineItem; 1]>::try_from(items).ok()? else { return None };
    Some(object.get("content")?.as_str()?.to_owned())
}

/// Returns arguments as text. Some providers leave the arguments of a call without inputs empty.
fn arguments_text(arguments: OptionalRawJson) -> String {
    let Some(arguments) = arguments else { return "{}".to_owned() };
    match serde_json::from_str::<String>(arguments.get()) {
        Ok(text) if text.trim().is_empty() => "{}".to_owned(),
        Ok(text) => text,
        Err(_not_a_text) => arguments.get().to_owned(),
    }
}

/// Returns both counts; `None` if one is missing.
fn token_counts(usage: OptionalRawJson) -> Option<TokenCounts> {
    let ChatUsage { prompt_tokens, completion_tokens } = serde_json::from_str(usage?.get()).ok()?;
    Some(TokenCounts { input: prompt_tokens, output: completion_tokens })
}
