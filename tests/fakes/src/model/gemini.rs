//! Gemini `generateContent` and `streamGenerateContent`.

use serde_json::{Value, json};

use crate::dialect::{AnswerContent, ModelAnswer, ModelStreamEvent};

pub(crate) fn full_document(answer: &ModelAnswer) -> Value {
    document(answer, &part(answer, answer.reply_text_or_arguments()), true)
}

pub(crate) fn events(answer: &ModelAnswer) -> Vec<ModelStreamEvent> {
    let pieces = match &answer.reply {
        AnswerContent::Text(_) => answer.reply_pieces(),
        AnswerContent::Call { .. } => vec![answer.reply_text_or_arguments()],
    };
    let piece_count = pieces.len();
    let numbered_pieces = pieces.into_iter().enumerate();
    let event = |(index, piece)| {
        ModelStreamEvent::without_name(&document(
            answer,
            &part(answer, piece),
            index + 1 == piece_count,
        ))
    };
    numbered_pieces.map(event).collect()
}

fn part(answer: &ModelAnswer, text: String) -> Value {
    match &answer.reply {
        AnswerContent::Text(_) => json!({"text": text}),
        AnswerContent::Call { name, arguments } => {
            json!({"functionCall": {"id": answer.id("call"), "name": name, "args": arguments}})
        }
    }
}

fn document(answer: &ModelAnswer, part: &Value, is_last: bool) -> Value {
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
