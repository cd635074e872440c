//! `OpenAI` responses.

use serde_json::{Value, json};

use crate::dialect::{AnswerContent, ModelAnswer, ModelStreamEvent};

pub(crate) fn full_document(answer: &ModelAnswer) -> Value {
    let (input, output) = (answer.input_tokens, answer.output_tokens);
    json!({
        "id": answer.id("resp"), "object": "response", "created_at": answer.created_at,
        "status": "completed", "model": answer.model, "output": [output_item(answer)],
        "usage": {
            "input_tokens": input, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": input + output,
        },
        "error": null, "incomplete_details": null, "parallel_tool_calls": true,
        "tool_choice": "auto", "tools": [], "metadata": {},
    })
}

pub(crate) fn events(answer: &ModelAnswer) -> Vec<ModelStreamEvent> {
    let mut created_response = full_document(answer);
    created_response["status"] = json!("in_progress");
    created_response["output"] = json!([]);
    created_response["usage"] = Value::Null;
    let mut events = vec![("response.created", json!({"response": created_response}))];
    events.extend(match &answer.reply {
        AnswerContent::Text(text) => text_events(answer, text),
        AnswerContent::Call { .. } => call_events(answer),
    });
    let item = output_item(answer);
    events.push(("response.output_item.done", json!({"output_index": 0, "item": item})));
    events.push(("response.completed", json!({"response": full_document(answer)})));
    let numbered_events = events.into_iter().enumerate().map(|(number, (name, mut data))| {
        data["type"] = json!(name);
        data["sequence_number"] = json!(number);
        ModelStreamEvent::with_name(name, &data)
    });
    numbered_events.collect()
}

fn text_events(answer: &ModelAnswer, text: &str) -> Vec<(&'static str, Value)> {
    let mut opened_item = output_item(answer);
    opened_item["status"] = json!("in_progress");
    opened_item["content"] = json!([]);
    let location = json!({"item_id": opened_item["id"], "output_index": 0, "content_index": 0});
    let event_data = |name: &str, value: Value| {
        let mut data = location.clone();
        data[name] = value;
        data
    };
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
    let mut events = vec![
        ("response.output_item.added", json!({"output_index": 0, "item": opened_item})),
        ("response.content_part.added", event_data("part", part(""))),
    ];
    let delta = |piece: String| ("response.output_text.delta", event_data("delta", json!(piece)));
    events.extend(answer.reply_pieces().into_iter().map(delta));
    events.push(("response.output_text.done", event_data("text", json!(text))));
    events.push(("response.content_part.done", event_data("part", part(text))));
    events
}

fn call_events(answer: &ModelAnswer) -> Vec<(&'static str, Value)> {
    let mut opened_item = output_item(answer);
    opened_item["status"] = json!("in_progress");
    opened_item["arguments"] = json!("");
    let (id, arguments) = (opened_item["id"].clone(), answer.reply_text_or_arguments());
    let event_data = |name: &str| json!({"item_id": id, "output_index": 0, name: arguments});
    vec![
        ("response.output_item.added", json!({"output_index": 0, "item": opened_item})),
        ("response.function_call_arguments.delta", event_data("delta")),
        ("response.function_call_arguments.done", event_data("arguments")),
    ]
}

fn output_item(answer: &ModelAnswer) -> Value {
    match &answer.reply {
        AnswerContent::Text(text) => json!({
            "type": "message", "id": answer.id("msg"), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }),
        AnswerContent::Call { name, .. } => json!({
            "type": "function_call", "id": answer.id("fc"), "call_id": answer.id("call"),
            "name": name, "arguments": answer.reply_text_or_arguments(), "status": "completed",
        }),
    }
}
