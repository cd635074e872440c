//! Anthropic Messages.

use serde_json::{Value, json};

use crate::dialect::{AnswerContent, ModelAnswer, ModelStreamEvent};

pub(crate) fn full_document(answer: &ModelAnswer) -> Value {
    json!({
        "id": answer.id("msg"), "type": "message", "role": "assistant", "model": answer.model,
        "content": [content_block(answer)], "stop_reason": stop_reason(answer), "stop_sequence": null,
        "usage": usage(answer, answer.output_tokens),
    })
}

pub(crate) fn events(answer: &ModelAnswer) -> Vec<ModelStreamEvent> {
    let mut message = full_document(answer);
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    message["usage"] = usage(answer, 1);
    let mut empty_block = content_block(answer);
    match &answer.reply {
        AnswerContent::Text(_) => empty_block["text"] = json!(""),
        AnswerContent::Call { .. } => empty_block["input"] = json!({}),
    }
    let mut events = vec![
        event("message_start", json!({"message": message})),
        event("content_block_start", json!({"index": 0, "content_block": empty_block})),
    ];
    events.extend(answer.reply_pieces().into_iter().map(|piece| {
        let delta = match &answer.reply {
            AnswerContent::Text(_) => json!({"type": "text_delta", "text": piece}),
            AnswerContent::Call { .. } => {
                json!({"type": "input_json_delta", "partial_json": piece})
            }
        };
        event("content_block_delta", json!({"index": 0, "delta": delta}))
    }));
    let delta = json!({"stop_reason": stop_reason(answer), "stop_sequence": null});
    let usage = usage(answer, answer.output_tokens);
    events.push(event("content_block_stop", json!({"index": 0})));
    events.push(event("message_delta", json!({"delta": delta, "usage": usage})));
    events.push(event("message_stop", json!({})));
    events
}

fn event(name: &'static str, mut data: Value) -> ModelStreamEvent {
    data["type"] = json!(name);
    ModelStreamEvent::with_name(name, &data)
}

fn content_block(answer: &ModelAnswer) -> Value {
    match &answer.reply {
        AnswerContent::Text(text) => json!({"type": "text", "text": text}),
        AnswerContent::Call { name, arguments } => {
            json!({"type": "tool_use", "id": answer.id("toolu"), "name": name, "input": arguments})
        }
    }
}

const fn stop_reason(answer: &ModelAnswer) -> &'static str {
    match answer.reply {
        AnswerContent::Text(_) => "end_turn",
        AnswerContent::Call { .. } => "tool_use",
    }
}

fn usage(answer: &ModelAnswer, output_tokens: u64) -> Value {
    json!({
        "input_tokens": answer.input_tokens, "output_tokens": output_tokens,
        "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
    })
}
