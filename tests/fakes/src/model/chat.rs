//! `OpenAI` chat completions.

use serde_json::{Value, json};

use crate::dialect::{Event, ModelAnswer, ModelReply};

pub(crate) fn full_document(answer: &ModelAnswer) -> Value {
    let message = match &answer.reply {
        ModelReply::Text(text) => json!({"role": "assistant", "content": text}),
        ModelReply::Call { name, .. } => {
            json!({"role": "assistant", "content": null, "tool_calls": [tool_call(answer, name)]})
        }
    };
    let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason(answer)});
    let mut document = document_head(answer, "chat.completion");
    document["choices"] = json!([choice]);
    document["usage"] = usage(answer);
    document
}

pub(crate) fn events(answer: &ModelAnswer) -> Vec<Event> {
    let chunk = |delta: Value, finish: Option<&str>| {
        let mut document = document_head(answer, "chat.completion.chunk");
        document["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        Event::of(&document)
    };
    let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), None)];
    match &answer.reply {
        ModelReply::Text(_) => {
            let pieces = answer.pieces().into_iter();
            events.extend(pieces.map(|piece| chunk(json!({"content": piece}), None)));
        }
        ModelReply::Call { name, .. } => {
            let mut call = tool_call(answer, name);
            call["index"] = json!(0);
            events.push(chunk(json!({"tool_calls": [call]}), None));
        }
    }
    events.push(chunk(json!({}), Some(finish_reason(answer))));
    let mut last = document_head(answer, "chat.completion.chunk");
    last["choices"] = json!([]);
    last["usage"] = usage(answer);
    events.push(Event::of(&last));
    events.push(Event { name: None, data: "[DONE]".to_owned() });
    events
}

fn document_head(answer: &ModelAnswer, object: &str) -> Value {
    let id = answer.id("chatcmpl");
    json!({"id": id, "object": object, "created": answer.created_at, "model": answer.model})
}

fn tool_call(answer: &ModelAnswer, name: &str) -> Value {
    let function = json!({"name": name, "arguments": answer.reply_text()});
    json!({"id": answer.id("call"), "type": "function", "function": function})
}

const fn finish_reason(answer: &ModelAnswer) -> &'static str {
    match answer.reply {
        ModelReply::Text(_) => "stop",
        ModelReply::Call { .. } => "tool_calls",
    }
}

fn usage(answer: &ModelAnswer) -> Value {
    let (input, output) = (answer.input_tokens, answer.output_tokens);
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
}
