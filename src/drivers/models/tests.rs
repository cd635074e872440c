//! Tests of the client of language models, with a scripted provider on a real socket.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::agent::cognitive::ModelReference;
use algonius_actors::model::agent::model_provider::ModelProvider;
use algonius_actors::model::completion::{
    ModelMessage, ModelToolCall, OfferedTool, RequestedToolCall,
};
use algonius_actors::model::push::Secret;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::*;
use provider::{ScriptedProvider, ScriptedResponse};

mod faults;
mod limits;
mod provider;

/// Short pauses, because real sockets need real time.
const TEST_BACKOFF: RetryBackoff = RetryBackoff {
    after_fault: Duration::from_millis(1),
    after_rate_limit: Duration::from_millis(2),
};

fn fixed_time() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

/// Clock that always has the same time.
struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> DateTime<Utc> {
        fixed_time()
    }
}

fn connections() -> ModelConnections {
    let connections = ModelConnections::new(Arc::new(StoppedClock)).unwrap();
    ModelConnections { backoffs: [TEST_BACKOFF; RETRY_BACKOFFS.len()], ..connections }
}

fn model_provider(base_url: &str) -> ModelProvider {
    ModelProvider {
        name: "local".to_owned(),
        base_url: base_url.to_owned(),
        api_key: Some(Secret("key-canary".to_owned())),
        timeout: Duration::from_secs(30),
        max_concurrent: NonZeroU32::new(8).unwrap(),
        requests_per_minute: NonZeroU32::new(1000).unwrap(),
    }
}

fn requested_tool_call(tool: &str, arguments: &str) -> RequestedToolCall {
    RequestedToolCall { tool: tool.to_owned(), arguments: arguments.to_owned() }
}

fn request(messages: Vec<ModelMessage>, tools: Vec<OfferedTool>) -> CompletionRequest {
    let (provider, name) = ("local".to_owned(), "vendor/small".to_owned());
    CompletionRequest {
        model: ModelReference { provider, name },
        temperature: 0.5,
        messages,
        tools,
    }
}

fn greeting() -> CompletionRequest {
    request(vec![ModelMessage::User("hello".to_owned())], Vec::new())
}

async fn complete(provider: &ScriptedProvider) -> Result<ModelReply, CompletionError> {
    let client = connections().client(Arc::new(model_provider(&provider.base_url())));
    client.complete(greeting()).await
}

/// Returns the reply to a document with this message.
async fn reply_of(message: Value, finish_reason: &str, usage: Value) -> ModelReply {
    let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason});
    let document = json!({"choices": [choice], "usage": usage});
    let provider = ScriptedProvider::start([ScriptedResponse::document(&document)]).await;
    complete(&provider).await.unwrap()
}

fn model_tool_call(id: &str, tool: &str, arguments: &str) -> ModelToolCall {
    ModelToolCall { id: id.to_owned(), tool: tool.to_owned(), arguments: arguments.to_owned() }
}

#[tokio::test]
async fn a_request_has_the_wire_form_of_chat_completions() {
    let mut provider = ScriptedProvider::start([ScriptedResponse::text("ok")]).await;
    let messages = vec![
        ModelMessage::System("be brief".to_owned()),
        ModelMessage::User("the time?".to_owned()),
        ModelMessage::Assistant {
            text: String::new(),
            calls: vec![
                model_tool_call("c1", "now", "{\"zone\":\"UTC\"}"),
                model_tool_call("c2", "now", "nonsense"),
            ],
        },
        ModelMessage::ToolResult { call_id: "c1".to_owned(), text: "noon".to_owned() },
        ModelMessage::Assistant { text: "It is noon.".to_owned(), calls: Vec::new() },
    ];
    let parameters = json!({"type": "object", "properties": {"zone": {"type": "string"}}});
    let tool = OfferedTool {
        name: "now".to_owned(),
        description: "the time".to_owned(),
        parameters: parameters.clone(),
    };
    let client = connections().client(Arc::new(model_provider(&provider.base_url())));
    client.complete(request(messages, vec![tool])).await.unwrap();

    let received = provider.next_request().await;
    assert!(received.head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"));
    let head = received.head.to_lowercase();
    assert!(head.contains("\r\nauthorization: bearer key-canary\r\n"), "{head}");
    assert!(head.contains("\r\ncontent-type: application/json\r\n"), "{head}");
    let function = |arguments: &str| json!({"name": "now", "arguments": arguments});
    let expected = json!({
        "model": "vendor/small",
        "temperature": 0.5,
        "stream": false,
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "the time?"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": function("{\"zone\":\"UTC\"}")},
                {"id": "c2", "type": "function", "function": function("{}")},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "noon"},
            {"role": "assistant", "content": "It is noon."},
        ],
        "tools": [{"type": "function", "function": {
            "name": "now", "description": "the time", "parameters": parameters,
        }}],
        "tool_choice": "auto",
    });
    assert_eq!(received.json(), expected);
}

#[tokio::test]
async fn a_request_without_tools_and_key_names_neither() {
    let mut provider = ScriptedProvider::start([ScriptedResponse::text("ok")]).await;
    let keyless = ModelProvider { api_key: None, ..model_provider(&provider.base_url()) };
    connections().client(Arc::new(keyless)).complete(greeting()).await.unwrap();
    let received = provider.next_request().await;
    assert!(!received.head.to_lowercase().contains("authorization"), "{}", received.head);
    assert!(received.json().get("tools").is_none() && received.json().get("tool_choice").is_none());
}

#[test]
fn the_key_is_absent_from_debug_output() {
    let provider = model_provider("http://127.0.0.1:1/v1");
    let chat_call = ChatCall::new(&provider, &greeting()).unwrap();
    let request_debug_text = format!("{:?}", chat_call.build_request().unwrap());
    assert!(request_debug_text.contains("Sensitive"), "{request_debug_text}");
    let output = format!("{request_debug_text}{:?}", connections().client(Arc::new(provider)));
    assert!(!output.contains("key-canary"), "{output}");
}

#[test]
fn an_address_or_key_that_http_excludes_is_refused() {
    let broken_address = model_provider("http://exa mple/v1");
    let key = Some(Secret("two\nlines".to_owned()));
    let broken_key = ModelProvider { api_key: key, ..model_provider("http://127.0.0.1:1/v1") };
    for provider in [broken_address, broken_key] {
        assert!(ChatCall::new(&provider, &greeting()).is_none());
    }
}

#[tokio::test]
async fn a_reply_with_text_has_its_tokens() {
    let usage = json!({"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15});
    let reply = reply_of(json!({"role": "assistant", "content": "hi"}), "stop", usage).await;
    assert_eq!((reply.text.as_str(), reply.calls.len(), reply.is_cut_off), ("hi", 0, false));
    assert_eq!(reply.tokens.map(|tokens| (tokens.input, tokens.output)), Some((12, 3)));
}

#[tokio::test]
async fn a_reply_without_both_token_counts_reports_none() {
    for usage in [json!(null), json!({}), json!({"prompt_tokens": 12}), json!("many")] {
        let reply = reply_of(json!({"content": "hi"}), "length", usage).await;
        assert_eq!((reply.tokens, reply.is_cut_off), (None, true));
    }
}

#[tokio::test]
async fn a_reply_with_calls_retains_their_order_and_arguments() {
    let calls = json!([
        {"id": "a", "type": "function", "function": {"name": "now", "arguments": "{\"n\": 1}"}},
        {"id": "a", "type": "function", "function": {"name": "find", "arguments": {"n": 2}}},
        {"function": {"name": "list", "arguments": ""}},
        {"function": {"name": "note", "arguments": "no JSON"}},
    ]);
    let message = json!({"content": null, "tool_calls": calls});
    let reply = reply_of(message, "tool_calls", json!(null)).await;
    assert_eq!(reply.text, "");
    let expected = vec![
        requested_tool_call("now", "{\"n\": 1}"),
        requested_tool_call("find", "{\"n\":2}"),
        requested_tool_call("list", "{}"),
        requested_tool_call("note", "no JSON"),
    ];
    assert!(reply.calls == expected, "{:?}", reply.calls);
}

#[tokio::test]
async fn the_texts_of_a_list_of_parts_are_joined() {
    let parts = json!([{"type": "text", "text": "one "}, {"type": "image"}, {"text": "two"}]);
    let reply = reply_of(json!({"content": parts, "tool_calls": null}), "stop", json!(null)).await;
    assert_eq!(reply.text, "one two");
}

#[tokio::test]
async fn a_content_of_another_form_is_unusable_without_calls() {
    for content in [json!(7), json!({"text": "a"}), json!([1]), json!([{"text": 1}])] {
        let document = json!({"choices": [{"message": {"content": content}}]});
        let provider = ScriptedProvider::start([ScriptedResponse::document(&document)]).await;
        let unusable = CompletionError::Unusable("has a content that cannot be read".to_owned());
        assert_eq!(complete(&provider).await, Err(unusable), "{content}");
        let calls = json!([{"id": "c", "function": {"name": "now", "arguments": "{}"}}]);
        let message = json!({"content": content, "tool_calls": calls});
        let reply = reply_of(message, "tool_calls", json!(null)).await;
        assert_eq!((reply.text.as_str(), reply.calls.len()), ("", 1), "{content}");
    }
}
