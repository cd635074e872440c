//! Gemini `generateContent` and `streamGenerateContent`.

use serde_json::{Value, json};

use crate::dialect::{Answer, Event, Reply};

pub(crate) fn whole(answer: &Answer) -> Value {
    document(answer, &part(answer, answer.said()), true)
}

pub(crate) fn events(answer: &Answer) -> Vec<Event> {
    let pieces = match &answer.reply {
        Reply::Text(_) => answer.pieces(),
        Reply::Call { .. } => vec![answer.said()],
    };
    let last = pieces.len();
    let numbered = pieces.into_iter().enumerate();
    let event = |(at, piece)| Event::of(&document(answer, &part(answer, piece), at + 1 == last));
    numbered.map(event).collect()
}

fn part(answer: &Answer, text: String) -> Value {
    match &answer.reply {
        Reply::Text(_) => json!({"text": text}),
        Reply::Call { name, arguments } => {
            json!({"functionCall": {"id": answer.id("call"), "name": name, "args": arguments}})
        }
    }
}

fn document(answer: &Answer, part: &Value, is_last: bool) -> Value {
    let (input, output) = (answer.input_tokens, answer.output_tokens);
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": [part]}});
    if is_last {
        candidate["finishReason"] = json!("STOP");
    }
    json!({
        "candidates": [candidate], "modelVersion": answer.model, "responseId": answer.id("resp"),
        "usageMetadata": {
            "promptTokenCount": input, "candidatesTokenCount": output,
            "totalTokenCount": input + output,
        },
    })
}
