//! Four dialects as their services document them: paths, and JSON pointers.

use serde_json::{Value, json};

/// Dialect with its request format, and the places of values in its answers.
pub(crate) struct DialectCase {
    pub(crate) path: &'static str,
    pub(crate) streamed: &'static str,
    /// Function that returns the body of a request with this text.
    pub(crate) body: fn(&str) -> Value,
    /// Function that adds the tool result `a result` to the body.
    pub(crate) result: fn(&mut Value),
    pub(crate) text: &'static str,
    pub(crate) call: [&'static str; 2],
    /// Places of the input and output tokens.
    pub(crate) usage: [&'static str; 2],
    /// Place of the text in an event of a stream.
    pub(crate) piece: &'static str,
    pub(crate) message: &'static str,
}

pub(crate) const ANTHROPIC: DialectCase = DialectCase {
    path: "/v1/messages",
    streamed: "/v1/messages?beta=true",
    body: |text| json!({"model": "m", "messages": [{"role": "user", "content": text}]}),
    result: |body| {
        let result = json!([{"type": "tool_result", "content": [{"text": "a result"}]},
            {"type": "text", "text": "a remark of the agent"}]);
        push(&mut body["messages"], json!({"role": "user", "content": result}));
    },
    text: "/content/0/text",
    call: ["/content/0/name", "/content/0/input"],
    usage: ["/usage/input_tokens", "/usage/output_tokens"],
    piece: "/delta/text",
    message: "/error/message",
};

pub(crate) const CHAT: DialectCase = DialectCase {
    path: "/v1/chat/completions",
    streamed: "/v1/chat/completions",
    body: |text| json!({"model": "m", "messages": [{"role": "user", "content": text}]}),
    result: |body| push(&mut body["messages"], json!({"role": "tool", "content": "a result"})),
    text: "/choices/0/message/content",
    call: [
        "/choices/0/message/tool_calls/0/function/name",
        "/choices/0/message/tool_calls/0/function/arguments",
    ],
    usage: ["/usage/prompt_tokens", "/usage/completion_tokens"],
    piece: "/choices/0/delta/content",
    message: "/error/message",
};

pub(crate) const RESPONSES: DialectCase = DialectCase {
    path: "/v1/responses",
    streamed: "/v1/responses",
    body: |text| {
        let content = json!([{"type": "input_text", "text": text}]);
        json!({"model": "m", "input": [{"type": "message", "role": "user", "content": content}]})
    },
    result: |body| {
        let result = json!({"type": "function_call_output", "output": "a result"});
        push(&mut body["input"], result);
    },
    text: "/output/0/content/0/text",
    call: ["/output/0/name", "/output/0/arguments"],
    usage: ["/usage/input_tokens", "/usage/output_tokens"],
    piece: "/delta",
    message: "/error/message",
};

pub(crate) const GEMINI: DialectCase = DialectCase {
    path: "/v1beta/models/m:generateContent",
    streamed: "/v1beta/models/m:streamGenerateContent?alt=sse",
    body: |text| json!({"contents": [{"role": "user", "parts": [{"text": text}]}]}),
    result: |body| {
        let result = json!([{"functionResponse": {"name": "Bash", "response": "a result"}}]);
        push(&mut body["contents"], json!({"role": "user", "parts": result}));
    },
    text: "/candidates/0/content/parts/0/text",
    call: [
        "/candidates/0/content/parts/0/functionCall/name",
        "/candidates/0/content/parts/0/functionCall/args",
    ],
    usage: ["/usageMetadata/promptTokenCount", "/usageMetadata/candidatesTokenCount"],
    piece: "/candidates/0/content/parts/0/text",
    message: "/error/message",
};

pub(crate) const DIALECTS: [DialectCase; 4] = [ANTHROPIC, CHAT, RESPONSES, GEMINI];

fn push(list: &mut Value, item: Value) {
    list.as_array_mut().unwrap().push(item);
}
