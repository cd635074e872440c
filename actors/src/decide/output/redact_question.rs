//! Stored form of questions and answers: redacted, bounded, and without characters that change how a text is displayed.

use algonius_redact::Redactor;
use serde_json::{Map, Value};

use crate::model::interaction::{
    AnswerValue, InteractionAnswer, InteractionEnd, Question, QuestionOption, ToolCallSubject,
};

/// Longest sentence of a question, in bytes.
const MAX_SENTENCE_BYTES: usize = 4 * 1024;

/// Longest text among the arguments of a tool call, in bytes. The digest covers the whole arguments.
const MAX_ARGUMENT_BYTES: usize = 16 * 1024;

/// Returns the stored form of a question.
#[must_use]
pub fn redact_question(question: Question, redactor: &Redactor) -> Question {
    let Question { kind, message, options, subject, schema } = question;
    let redact_option = |option: QuestionOption| QuestionOption {
        // The answer to a permission request is allow or deny; other questions need the id as it is.
        id: if kind.is_permission() {
            redact_and_truncate(&option.id, MAX_SENTENCE_BYTES, redactor)
        } else {
            option.id
        },
        name: redact_and_truncate(&option.name, MAX_SENTENCE_BYTES, redactor),
        kind: option.kind,
    };
    Question {
        kind,
        message: redact_and_truncate(&message, MAX_SENTENCE_BYTES, redactor),
        options: options.into_iter().map(redact_option).collect(),
        subject: subject.map(|call| redact_tool_call(call, redactor)),
        schema: schema.map(|schema| redact_value(schema, redactor)),
    }
}

/// Returns the stored form of the end of an interaction.
#[must_use]
pub fn redact_interaction_end(end: &InteractionEnd, redactor: &Redactor) -> InteractionEnd {
    let InteractionEnd { state, answer: InteractionAnswer { value: answer, by }, at } = end.clone();
    let answer = answer.map(|answer| match answer {
        AnswerValue::Deny { reason } => AnswerValue::Deny {
            reason: reason.map(|reason| redact_and_truncate(&reason, MAX_SENTENCE_BYTES, redactor)),
        },
        AnswerValue::Text { text } => {
            AnswerValue::Text { text: redact_and_truncate(&text, usize::MAX, redactor) }
        }
        AnswerValue::Form { values } => {
            AnswerValue::Form { values: redact_value(values, redactor) }
        }
        answer @ (AnswerValue::Allow | AnswerValue::Option { .. } | AnswerValue::Decline) => answer,
    });
    InteractionEnd { state, answer: InteractionAnswer { value: answer, by }, at }
}

fn redact_tool_call(call: ToolCallSubject, redactor: &Redactor) -> ToolCallSubject {
    let redact_name = |name: &str| redact_and_truncate(name, MAX_SENTENCE_BYTES, redactor);
    ToolCallSubject {
        id: redact_name(&call.id),
        tool: redact_name(&call.tool),
        kind: call.kind.as_deref().map(redact_name),
        title: call.title.as_deref().map(redact_name),
        command: call
            .command
            .map(|command| redact_and_truncate(&command, MAX_ARGUMENT_BYTES, redactor)),
        paths: call.paths.iter().map(|path| redact_name(path)).collect(),
        url: call.url.as_deref().map(redact_name),
        args: redact_value(call.args, redactor),
    }
}

fn redact_value(value: Value, redactor: &Redactor) -> Value {
    match value {
        Value::String(value) => {
            Value::String(redact_and_truncate(&value, MAX_ARGUMENT_BYTES, redactor))
        }
        Value::Array(items) => items.into_iter().map(|item| redact_value(item, redactor)).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, field)| {
                (
                    redact_and_truncate(&name, MAX_SENTENCE_BYTES, redactor),
                    redact_value(field, redactor),
                )
            })
            .collect::<Map<_, _>>()
            .into(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}

/// Redacts a text before it is cut, because a cut secret would no longer be recognized.
fn redact_and_truncate(text: &str, max_bytes: usize, redactor: &Redactor) -> String {
    let redacted = redactor.redact(text);
    let printable: String = redacted.chars().filter(|char| !changes_display(*char)).collect();
    match printable.len() > max_bytes {
        true => {
            let end = printable.floor_char_boundary(max_bytes);
            format!("{}… ({} more bytes)", &printable.split_at(end).0, printable.len() - end)
        }
        false => printable,
    }
}

/// Returns true for control characters and for characters that change the direction or the visibility of a text.
fn changes_display(char: char) -> bool {
    (char.is_control() && !matches!(char, '\n' | '\t'))
        || matches!(char,
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::interaction::QuestionKind;

    const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

    #[test]
    fn a_question_is_redacted_in_every_text() {
        let redactor = Redactor::new([]);
        let question = Question {
            kind: QuestionKind::ToolPermission,
            message: format!("run {SECRET}?\u{202e}\u{1b}[2J"),
            options: Vec::new(),
            subject: Some(ToolCallSubject {
                command: Some(format!("curl -H {SECRET}")),
                args: json!({"command": ["curl", SECRET], "n": 1}),
                ..ToolCallSubject::default()
            }),
            schema: None,
        };
        let redacted = redact_question(question, &redactor);
        let question_json = serde_json::to_string(&redacted).unwrap();
        assert!(!question_json.contains(SECRET), "{question_json}");
        assert!(!redacted.message.contains(['\u{202e}', '\u{1b}']), "{:?}", redacted.message);
        assert_eq!(redacted.subject.map(|call| call.args["n"].clone()), Some(json!(1)));
    }

    #[test]
    fn a_long_text_is_cut_after_its_redaction() {
        let redactor = Redactor::new([]);
        let long = "x".repeat(MAX_SENTENCE_BYTES - 10) + " " + SECRET + " end";
        let cut = redact_and_truncate(&long, MAX_SENTENCE_BYTES, &redactor);
        assert!(!cut.contains("ghp_0"), "{}", cut.trim_start_matches('x'));
        assert!(
            redact_and_truncate(&"x ".repeat(MAX_SENTENCE_BYTES), MAX_SENTENCE_BYTES, &redactor)
                .contains("more bytes")
        );
    }
}
