//! Request of a chat completion as JSON.

use algonius_actors::model::completion::{
    CompletionRequest, ModelMessage, ModelToolCall, OfferedTool,
};
use serde_json::{Map, Value, json};

/// Returns the body of a request.
pub(super) fn request_body(request: &CompletionRequest) -> Value {
    let messages: Vec<_> = request.messages.iter().map(message_json).collect();
    let mut document = json!({
        "model": request.model.name,
        "messages": messages,
        "temperature": request.temperature,
        "stream": false,
    });
    if let Some(document) = document.as_object_mut().filter(|_| !request.tools.is_empty()) {
        let tools = request.tools.iter().map(tool_json).collect();
        document.insert("tools".to_owned(), Value::Array(tools));
        document.insert("tool_choice".to_owned(), json!("auto"));
    }
    document
}

fn message_json(message: &ModelMessage) -> Value {
    match message {
        ModelMessage::System(text) => json!({"role": "system", "content": text}),
        ModelMessage::User(text) => json!({"role": "user", "content": text}),
        ModelMessage::Assistant { text, calls } if calls.is_empty() => {
            json!({"role": "assistant", "content": text})
        }
        ModelMessage::Assistant { text, calls } => {
            let content = Some(text).filter(|text| !text.is_empty());
            let calls: Vec<_> = calls.iter().map(tool_call_json).collect();
            json!({"role": "assistant", "content": content, "tool_calls": calls})
        }
        ModelMessage::ToolResult { call_id: call, text } => {
            json!({"role": "tool", "tool_call_id": call, "content": text})
        }
    }
}

fn tool_call_json(call: &ModelToolCall) -> Value {
    let is_object = serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok();
    // Some providers refuse a conversation in which a call has no JSON object as its arguments.
    let arguments = if is_object { &call.arguments } else { "{}" };
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": call.tool, "arguments": arguments},
    })
}

fn tool_json(tool: &OfferedTool) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        },
    })
}
