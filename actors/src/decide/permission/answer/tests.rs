//! Tests of answers: which answers suit which questions, and what a text means.

use serde_json::json;

use super::*;

fn option(id: &str, name: &str, kind: OptionKind) -> QuestionOption {
    QuestionOption { id: id.to_owned(), name: name.to_owned(), kind }
}

fn question(kind: InteractionKind, options: &[QuestionOption]) -> Question {
    Question {
        kind,
        message: String::new(),
        options: options.to_vec(),
        subject: None,
        schema: Some(json!({"type": "object", "properties": {"name": {"type": "string"}}})),
    }
}

fn permission() -> Question {
    question(
        InteractionKind::ToolPermission,
        &[
            option("a1", "Yes", OptionKind::AllowOnce),
            option("a2", "Yes, always", OptionKind::AllowAlways),
            option("r1", "No", OptionKind::RejectOnce),
            option("r2", "Never", OptionKind::RejectAlways),
            option("o", "Explain", OptionKind::Other),
        ],
    )
}

fn choice() -> Question {
    let options = [
        option("1", "Red", OptionKind::Other),
        option("2", "Blue", OptionKind::Other),
        option("3", "blue", OptionKind::Other),
    ];
    question(InteractionKind::Choice, &options)
}

fn option_answer(id: &str) -> AnswerValue {
    AnswerValue::Option { id: id.to_owned() }
}

fn text_answer(text: &str) -> AnswerValue {
    AnswerValue::Text { text: text.to_owned() }
}

const NO_REASON: AnswerValue = AnswerValue::Deny { reason: None };

#[test]
fn every_kind_of_question_takes_its_kinds_of_answers() {
    let answers = [
        AnswerValue::Allow,
        NO_REASON,
        option_answer("a1"),
        text_answer("x"),
        AnswerValue::Form { values: json!({"name": "x"}) },
        AnswerValue::Decline,
    ];
    for (kind, words) in [
        (InteractionKind::ToolPermission, &["allow", "deny", "option"][..]),
        (InteractionKind::FileApproval, &["allow", "deny", "option"]),
        (InteractionKind::Choice, &["option", "text", "decline"]),
        (InteractionKind::Confirmation, &["option", "decline"]),
        (InteractionKind::TextInput, &["text", "decline"]),
        (InteractionKind::Form, &["form", "decline"]),
    ] {
        let question = question(kind, &permission().options);
        let accepted = answers.iter().filter(|answer| check(&question, answer).is_ok());
        assert_eq!(accepted.map(AnswerValue::word).collect::<Vec<_>>(), words, "{kind:?}");
        for answer in answers.iter().filter(|answer| !words.contains(&answer.word())) {
            let fault = AnswerFault::WrongKind { question: kind.as_str(), answer: answer.word() };
            assert_eq!(check(&question, answer), Err(fault));
        }
    }
}

#[test]
fn options_of_a_permission_allow_once_or_deny() {
    for (id, expected) in [
        ("a1", Ok(AnswerValue::Allow)),
        ("a2", Ok(AnswerValue::Allow)),
        ("r1", Ok(NO_REASON)),
        ("r2", Ok(NO_REASON)),
        ("o", Err(AnswerFault::UnclearOption)),
        ("A1", Err(AnswerFault::UnknownOption)),
        ("Yes", Err(AnswerFault::UnknownOption)),
        ("", Err(AnswerFault::UnknownOption)),
    ] {
        assert_eq!(check(&permission(), &option_answer(id)), expected, "{id}");
    }
}

#[test]
fn only_offered_options_are_accepted() {
    let without_options = question(InteractionKind::Confirmation, &[]);
    let with_options =
        question(InteractionKind::Confirmation, &[option("ok", "OK", OptionKind::AllowOnce)]);
    for (question, id, expected) in [
        (&choice(), "1", true),
        (&choice(), "Red", false),
        (&without_options, "yes", true),
        (&without_options, "no", true),
        (&without_options, "ok", false),
        (&with_options, "ok", true),
        (&with_options, "yes", false),
    ] {
        let answer = check(question, &option_answer(id));
        let fault = if expected { Ok(option_answer(id)) } else { Err(AnswerFault::UnknownOption) };
        assert_eq!(answer, fault, "{id}");
    }
}

#[test]
fn texts_of_answers_are_bounded() {
    let long = "x".repeat(MAX_ANSWER_BYTES);
    let longer = format!("{long}x");
    let deny = |reason: &str| AnswerValue::Deny { reason: Some(reason.to_owned()) };
    let form = |name: &str| AnswerValue::Form { values: json!({"name": name}) };
    let input = question(InteractionKind::TextInput, &[]);
    assert!(
        check(&input, &text_answer(&long)).is_ok() && check(&permission(), &deny(&long)).is_ok()
    );
    assert_eq!(check(&input, &text_answer(&longer)), Err(AnswerFault::TooLong));
    assert_eq!(check(&choice(), &text_answer(&longer)), Err(AnswerFault::TooLong));
    assert_eq!(check(&permission(), &deny(&longer)), Err(AnswerFault::TooLong));
    let fields = question(InteractionKind::Form, &[]);
    assert_eq!(check(&fields, &form(&long)), Err(AnswerFault::TooLong));
    assert!(check(&fields, &form("x")).is_ok());
    assert_eq!(from_text(&input, &longer), None);
}

#[test]
fn a_text_allows_by_three_words_only() {
    for (text, expected) in [
        ("yes", Some(AnswerValue::Allow)),
        ("  YES\n", Some(AnswerValue::Allow)),
        ("Allow", Some(AnswerValue::Allow)),
        ("approve", Some(AnswerValue::Allow)),
        // The agent names its options, so no name of an option allows.
        ("a1", None),
        ("yes, always", None),
        ("A2", None),
        ("no", Some(NO_REASON)),
        ("DENY", Some(NO_REASON)),
        ("reject", Some(NO_REASON)),
        ("never", Some(NO_REASON)),
        ("explain", None),
        ("yes please", None),
        ("not yes", None),
        ("y", None),
        ("", None),
        ("  ", None),
    ] {
        assert_eq!(from_text(&permission(), text), expected, "{text:?}");
    }
}

#[test]
fn names_of_options_do_not_reverse_words() {
    let reversed = question(
        InteractionKind::ToolPermission,
        &[
            option("no", "Reject", OptionKind::AllowOnce),
            option("yes", "Allow", OptionKind::RejectOnce),
            option("go", "Go", OptionKind::AllowOnce),
            option("go2", "go", OptionKind::RejectOnce),
        ],
    );
    for word in ["no", "deny", "reject", "yes", "allow", "go", "GO"] {
        assert_eq!(from_text(&reversed, word), Some(NO_REASON), "{word}");
    }
    assert_eq!(from_text(&reversed, "approve"), Some(AnswerValue::Allow));
}

#[test]
fn a_text_answers_other_questions() {
    let without_options = question(InteractionKind::Confirmation, &[]);
    let with_options = question(
        InteractionKind::Confirmation,
        &[
            option("c", "Continue", OptionKind::AllowOnce),
            option("s", "Stop", OptionKind::RejectOnce),
        ],
    );
    let input = question(InteractionKind::TextInput, &[]);
    let form = question(InteractionKind::Form, &[]);
    for (question, text, expected) in [
        (&choice(), "red", Some(option_answer("1"))),
        (&choice(), " 2 ", Some(option_answer("2"))),
        (&choice(), "blue", Some(text_answer("blue"))), // Two options have this name.
        (&choice(), " green ", Some(text_answer("green"))),
        (&without_options, "Yes", Some(option_answer("yes"))),
        (&without_options, "reject", Some(option_answer("no"))),
        (&without_options, "maybe", None),
        (&with_options, "approve", Some(option_answer("c"))),
        (&with_options, "no", Some(option_answer("s"))),
        (&with_options, "stop", Some(option_answer("s"))),
        (&with_options, "maybe", None),
        (&input, " any text\n", Some(text_answer(" any text\n"))),
        (&input, "no", Some(text_answer("no"))),
        (&input, " \n", None),
        (&form, "yes", None),
    ] {
        assert_eq!(from_text(question, text), expected, "{text:?}");
    }
}
