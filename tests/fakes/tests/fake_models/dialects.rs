//! Four dialects as their services document them: paths, and JSON pointers.

use serde_json::{Value, json};

/// Dialect with its request format, and the places of values in its answers.
pub(crate) struct DialectCase {
    pub(crate) path: &'static str,
    pub(crate) stream_path: &'static str,
    /// Function that returns the body of a request with this text.
    pub(crate) request_body: fn(&str) -> Value,
    /// Function that adds the tool result `a result` to the body.
    pub(crate) add_tool_result: fn(&mut Value),
    pub(crate) text_pointer: &'static str,
    pub(crate) call_pointers: [&'static str; 2],
    /// Places of the input and output tokens.
    pub(crate) usage_pointers: [&'static str; 2],
    /// Place of the text in an event of a stream.
    pub(crate) piece_pointer: &'static str,
    pub(crate) error_message_pointer: &'static str,
}

pub(crate) const ANTHROPIC: DialectCase = DialectCase {
    path: "/v1/messages",
    stream_path: "/v1/messages?beta=true",
    request_body: |text| json!({"model": "m", "messages": [{"role": "user", "content": text}]}),
    add_tool_result: |body| {
        let result = json!([{"type": "tool_result", "content": [{"text": "a result"}]},
            {"type": "text", "text": "a remark of the agent"}]);
        push(&mut body["messages"], json!({"role": "user", "content": result}));
    },
    text_pointer: "/content/0/text",
    call_pointers: ["/content/0/name", "/content/0/input"],
    usage_pointers: ["/usage/input_tokens", "/usage/output_tokens"],
    piece_pointer: "/delta/text",
    error_message_pointer: "/error/message",
};

pub(crate) const CHAT: DialectCase = DialectCase {
    path: "/v1/chat/completions",
    stream_path: "/v1/chat/completions",
    request_body: |text| json!({"model": "m", "messages": [{"role": "user", "content": text}]}),
    add_tool_result: |body| {
        push(&mut body["messages"], json!({"role": "tool", "content": "a result"}));
    },
    text_pointer: "/choices/0/message/content",
    call_pointers: [
        "/choices/0/message/tool_calls/0/function/name",
        "/choices/0/message/tool_calls/0/function/arguments",
    ],
    usage_pointers: ["/usage/prompt_tokens", "/usage/completion_tokens"],
    piece_pointer: "/choices/0/delta/content",
    error_message_pointer: "/error/message",
};

pub(crate) const RESPONSES: DialectCase = DialectCase {
    path: "/v1/responses",
    stream_path: "/v1/responses",
    request_body: |text| {
        let content = json!([{"type": "input_text", "text": text}]);
        json!({"model": "m", "input": [{"type": "message", "role": "user", "content": content}]})
    },
    add_tool_result: |body| {
        let result = json!({"type": "function_call_output", "output": "a result"});
        push(&mut body["input"], result);
    },
    text_pointer: "/output/0/content/0/text",
    call_pointers: ["/output/0/name", "/output/0/arguments"],
    usage_pointers: ["/usage/input_tokens", "/usage/output_tokens"],
    piece_pointer: "/delta",
    error_message_pointer: "/error/message",
};

pub(crate) const GEMINI: DialectCase = DialectCase {
    path: "/v1beta/models/m:generateContent",
    stream_path: "/v1beta/models/m:streamGenerateContent?alt=sse",
    request_body: |text| json!({"contents": [{"role": "user", "parts": [{"text": text}]}]}),
    add_tool_result: |body| {
        let result = json!([{"functionResponse": {"name": "Bash", "response": "a result"}}]);
        push(&mut body["contents"], json!({"role": "user", "parts": result}));
    },
    text_pointer: "/candidates/0/content/parts/0/text",
    call_pointers: [
        "/candidates/0/content/parts/0/functionCall/name",
        "/candidates/0/content/parts/0/functionCall/args",
    ],
    usage_pointers: ["/usageMetadata/promptTokenCount", "/usageMetadata/candidatesTokenCount"],
    piece_pointer: "/candidates/0/content/parts/0/text",
    error_message_pointer: "/error/message",
};

pub(crate) const DIALECTS: [DialectCase; 4] = [ANTHROPIC, CHAT, RESPONSES, GEMINI];

fn push(list: &mut Value, item: Value) {
    list.as_array_mut().unwrap().push(item);
}
