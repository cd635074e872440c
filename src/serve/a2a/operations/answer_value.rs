//! Answers in the terms of other projects, as answers in the terms of this service.

use algonius_a2a::interaction::ReplyContent;
use algonius_actors::decide::permission::answer::parse_answer;
use algonius_actors::model::interaction::{AnswerValue, Interaction, Question, QuestionKind};
use serde_json::{Map, Value};

/// Returns the answer to an interaction; `None` if the answer does not suit the kind of the question.
pub(super) fn answer_value(reply: ReplyContent, interaction: &Interaction) -> Option<AnswerValue> {
    let question = &interaction.question;
    match reply {
        ReplyContent::Value(value) => Some(value),
        ReplyContent::Decision { approved: true, .. } if question.kind.is_permission() => {
            Some(AnswerValue::Allow)
        }
        ReplyContent::Decision { approved: false, reason } if question.kind.is_permission() => {
            Some(AnswerValue::Deny { reason })
        }
        ReplyContent::Decision { approved, .. } if question.kind == QuestionKind::Confirmation => {
            parse_answer(question, if approved { "yes" } else { "no" })
        }
        // A rejection answers every question; an approval has no content for a question that needs one.
        ReplyContent::Decision { approved, .. } => (!approved).then_some(AnswerValue::Decline),
        ReplyContent::Texts(texts) if question.kind == QuestionKind::Form => {
            Some(AnswerValue::Form { values: form_values(question, texts) })
        }
        ReplyContent::Texts(texts) => parse_answer(question, texts.first()?.first()?),
    }
}

/// Returns the values of a form from texts in the order of the names of its fields.
fn form_values(question: &Question, texts: Vec<Vec<String>>) -> Value {
    let fields = question.schema.as_ref().and_then(|schema| schema.get("properties"));
    let mut fields: Vec<_> = fields.and_then(Value::as_object).into_iter().flatten().collect();
    fields.sort_by_key(|(name, _)| *name);
    let values = fields.into_iter().zip(texts);
    let values = values.filter(|(_, texts)| !texts.is_empty());
    let values: Map<_, _> =
        values.map(|((name, schema), texts)| (name.clone(), field_value(schema, texts))).collect();
    values.into()
}

fn field_value(schema: &Value, texts: Vec<String>) -> Value {
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => texts.into(),
        // A text that is not of the type of the field stays a text, and the check of the form refuses it.
        Some("boolean" | "integer" | "number") => {
            let text = texts.into_iter().next().unwrap_or_default();
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        }
        _ => texts.into_iter().next().map_or(Value::Null, Value::String),
    }
}
