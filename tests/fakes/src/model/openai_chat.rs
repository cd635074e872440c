//! `OpenAI` chat completions.

use serde_json::{Value, json};

use crate::dialect::{AnswerContent, ModelAnswer, ModelStreamEvent, ScriptedCall, ScriptedTurn};

pub(crate) fn full_document(answer: &ModelAnswer) -> Value {
    let turn = answer_turn(answer);
    let content = has_content(&turn).then_some(&turn.text);
    let mut message = json!({"role": "assistant", "content": content});
    if !turn.calls.is_empty() {
        message["tool_calls"] = tool_calls(answer, &turn).into();
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason(&turn)});
    let mut document = document_head(answer, "chat.completion");
    document["choices"] = json!([choice]);
    document["usage"] = usage(answer);
    document
}

pub(crate) fn events(answer: &ModelAnswer) -> Vec<ModelStreamEvent> {
    let chunk = |delta: Value, finish: Option<&str>| {
        let mut document = document_head(answer, "chat.completion.chunk");
        document["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        ModelStreamEvent::without_name(&document)
    };
    let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), None)];
    let turn = answer_turn(answer);
    if has_content(&turn) {
        let pieces = answer.split_into_pieces(&turn.text).into_iter();
        events.extend(pieces.map(|piece| chunk(json!({"content": piece}), None)));
    }
    for (index, mut call) in tool_calls(answer, &turn).into_iter().enumerate() {
        call["index"] = json!(index);
        events.push(chunk(json!({"tool_calls": [call]}), None));
    }
    events.push(chunk(json!({}), Some(finish_reason(&turn))));
    let mut last_chunk = document_head(answer, "chat.completion.chunk");
    last_chunk["choices"] = json!([]);
    last_chunk["usage"] = usage(answer);
    events.push(ModelStreamEvent::without_name(&last_chunk));
    events.push(ModelStreamEvent { name: None, data: "[DONE]".to_owned() });
    events
}

fn document_head(answer: &ModelAnswer, object: &str) -> Value {
    let id = answer.id("chatcmpl");
    json!({"id": id, "object": object, "created": answer.created_at, "model": answer.model})
}

/// Returns the turn of an answer, also of one without the directive `turns`.
fn answer_turn(answer: &ModelAnswer) -> ScriptedTurn {
    if let Some(turn) = &answer.turn {
        return turn.clone();
    }
    match &answer.reply {
        AnswerContent::Text(text) => ScriptedTurn { text: text.clone(), ..ScriptedTurn::default() },
        AnswerContent::Call { name, .. } => {
            let arguments = Value::from(answer.reply_text_or_arguments());
            let calls = vec![ScriptedCall { name: name.clone(), arguments }];
            ScriptedTurn { calls, ..ScriptedTurn::default() }
        }
    }
}

/// Returns true if the content of the message is a text.
fn has_content(turn: &ScriptedTurn) -> bool {
    turn.calls.is_empty() || !turn.text.is_empty()
}

fn tool_calls(answer: &ModelAnswer, turn: &ScriptedTurn) -> Vec<Value> {
    let call = |(index, call): (usize, &ScriptedCall)| {
        let id = match index {
            0 => answer.id("call"),
            _ => format!("{}_{index}", answer.id("call")),
        };
        let function = json!({"name": call.name, "arguments": call.arguments_text()});
        json!({"id": id, "type": "function", "function": function})
    };
    turn.calls.iter().enumerate().map(call).collect()
}

fn finish_reason(turn: &ScriptedTurn) -> &'static str {
    if turn.calls.is_empty() { "stop" } else { "tool_calls" }
}

fn usage(answer: &ModelAnswer) -> Value {
    let (input, output) = (answer.input_tokens, answer.output_tokens);
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
}
