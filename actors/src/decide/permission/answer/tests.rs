//! Tests of answers: which answers suit which questions, and what a text means.

use serde_json::json;

use super::*;

fn option(id: &str, name: &str, kind: OptionKind) -> QuestionOption {
    QuestionOption { id: id.to_owned(), name: name.to_owned(), kind }
}

fn question(kind: QuestionKind, options: &[QuestionOption]) -> Question {
    Question {
        kind,
        message: String::new(),
        options: options.to_vec(),
        subject: None,
        schema: Some(json!({"type": "object", "properties": {"name": {"type": "string"}}})),
    }
}

fn permission_question() -> Question {
    question(
        QuestionKind::ToolPermission,
        &[
            option("a1", "Yes", OptionKind::AllowOnce),
            option("a2", "Yes, always", OptionKind::AllowAlways),
            option("r1", "No", OptionKind::RejectOnce),
            option("r2", "Never", OptionKind::RejectAlways),
            option("o", "Explain", OptionKind::Other),
        ],
    )
}

fn choice_question() -> Question {
    let options = [
        option("1", "Red", OptionKind::Other),
        option("2", "Blue", OptionKind::Other),
        option("3", "blue", OptionKind::Other),
    ];
    question(QuestionKind::Choice, &options)
}

fn option_answer(id: &str) -> AnswerValue {
    AnswerValue::Option { id: id.to_owned() }
}

fn text_answer(text: &str) -> AnswerValue {
    AnswerValue::Text { text: text.to_owned() }
}

const DENY_WITHOUT_REASON: AnswerValue = AnswerValue::Deny { reason: None };

#[test]
fn every_kind_of_question_takes_its_kinds_of_answers() {
    let answers = [
        AnswerValue::Allow,
        DENY_WITHOUT_REASON,
        option_answer("a1"),
        text_answer("x"),
        AnswerValue::Form { values: json!({"name": "x"}) },
        AnswerValue::Decline,
    ];
    for (kind, accepted_kinds) in [
        (QuestionKind::ToolPermission, &["allow", "deny", "option"][..]),
        (QuestionKind::FileApproval, &["allow", "deny", "option"]),
        (QuestionKind::Choice, &["option", "text", "decline"]),
        (QuestionKind::Confirmation, &["option", "decline"]),
        (QuestionKind::TextInput, &["text", "decline"]),
        (QuestionKind::Form, &["form", "decline"]),
    ] {
        let question = question(kind, &permission_question().options);
        let accepted = answers.iter().filter(|answer| check_answer(&question, answer).is_ok());
        assert_eq!(
            accepted.map(AnswerValue::kind_name).collect::<Vec<_>>(),
            accepted_kinds,
            "{kind:?}"
        );
        for answer in answers.iter().filter(|answer| !accepted_kinds.contains(&answer.kind_name()))
        {
            let fault =
                AnswerFault::WrongKind { question: kind.as_str(), answer: answer.kind_name() };
            assert_eq!(check_answer(&question, answer), Err(fault));
        }
    }
}

#[test]
fn options_of_a_permission_allow_once_or_deny() {
    for (id, expected) in [
        ("a1", Ok(AnswerValue::Allow)),
        ("a2", Ok(AnswerValue::Allow)),
        ("r1", Ok(DENY_WITHOUT_REASON)),
        ("r2", Ok(DENY_WITHOUT_REASON)),
        ("o", Err(AnswerFault::UnclearOption)),
        ("A1", Err(AnswerFault::UnknownOption)),
        ("Yes", Err(AnswerFault::UnknownOption)),
        ("", Err(AnswerFault::UnknownOption)),
    ] {
        assert_eq!(check_answer(&permission_question(), &option_answer(id)), expected, "{id}");
    }
}

#[test]
fn only_offered_options_are_accepted() {
    let without_options = question(QuestionKind::Confirmation, &[]);
    let with_options =
        question(QuestionKind::Confirmation, &[option("ok", "OK", OptionKind::AllowOnce)]);
    for (question, id, expected) in [
        (&choice_question(), "1", true),
        (&choice_question(), "Red", false),
        (&without_options, "yes", true),
        (&without_options, "no", true),
        (&without_options, "ok", false),
        (&with_options, "ok", true),
        (&with_options, "yes", false),
    ] {
        let result = check_answer(question, &option_answer(id));
        let expected_result =
            if expected { Ok(option_answer(id)) } else { Err(AnswerFault::UnknownOption) };
        assert_eq!(result, expected_result, "{id}");
    }
}

#[test]
fn texts_of_answers_are_bounded() {
    let longest_text = "x".repeat(MAX_ANSWER_BYTES);
    let too_long_text = format!("{longest_text}x");
    let deny = |reason: &str| AnswerValue::Deny { reason: Some(reason.to_owned()) };
    let form_answer = |name: &str| AnswerValue::Form { values: json!({"name": name}) };
    let text_question = question(QuestionKind::TextInput, &[]);
    assert!(
        check_answer(&text_question, &text_answer(&longest_text)).is_ok()
            && check_answer(&permission_question(), &deny(&longest_text)).is_ok()
    );
    assert_eq!(
        check_answer(&text_question, &text_answer(&too_long_text)),
        Err(AnswerFault::TooLong)
    );
    assert_eq!(
        check_answer(&choice_question(), &text_answer(&too_long_text)),
        Err(AnswerFault::TooLong)
    );
    assert_eq!(
        check_answer(&permission_question(), &deny(&too_long_text)),
        Err(AnswerFault::TooLong)
    );
    let form_question = question(QuestionKind::Form, &[]);
    assert_eq!(
        check_answer(&form_question, &form_answer(&longest_text)),
        Err(AnswerFault::TooLong)
    );
    assert!(check_answer(&form_question, &form_answer("x")).is_ok());
    assert_eq!(parse_answer(&text_question, &too_long_text), None);
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
        ("no", Some(DENY_WITHOUT_REASON)),
        ("DENY", Some(DENY_WITHOUT_REASON)),
        ("reject", Some(DENY_WITHOUT_REASON)),
        ("never", Some(DENY_WITHOUT_REASON)),
        ("explain", None),
        ("yes please", None),
        ("not yes", None),
        ("y", None),
        ("", None),
        ("  ", None),
    ] {
        assert_eq!(parse_answer(&permission_question(), text), expected, "{text:?}");
    }
}

#[test]
fn names_of_options_do_not_reverse_words() {
    let reversed = question(
        QuestionKind::ToolPermission,
        &[
            option("no", "Reject", OptionKind::AllowOnce),
            option("yes", "Allow", OptionKind::RejectOnce),
            option("go", "Go", OptionKind::AllowOnce),
            option("go2", "go", OptionKind::RejectOnce),
        ],
    );
    for word in ["no", "deny", "reject", "yes", "allow", "go", "GO"] {
        assert_eq!(parse_answer(&reversed, word), Some(DENY_WITHOUT_REASON), "{word}");
    }
    assert_eq!(parse_answer(&reversed, "approve"), Some(AnswerValue::Allow));
}

#[test]
fn a_text_answers_other_questions() {
    let without_options = question(QuestionKind::Confirmation, &[]);
    let with_options = question(
        QuestionKind::Confirmation,
        &[
            option("c", "Continue", OptionKind::AllowOnce),
            option("s", "Stop", OptionKind::RejectOnce),
        ],
    );
    let text_question = question(QuestionKind::TextInput, &[]);
    let form_question = question(QuestionKind::Form, &[]);
    for (question, text, expected) in [
        (&choice_question(), "red", Some(option_answer("1"))),
        (&choice_question(), " 2 ", Some(option_answer("2"))),
        (&choice_question(), "blue", Some(text_answer("blue"))), // Two options have this name.
        (&choice_question(), " green ", Some(text_answer("green"))),
        (&without_options, "Yes", Some(option_answer("yes"))),
        (&without_options, "reject", Some(option_answer("no"))),
        (&without_options, "maybe", None),
        (&with_options, "approve", Some(option_answer("c"))),
        (&with_options, "no", Some(option_answer("s"))),
        (&with_options, "stop", Some(option_answer("s"))),
        (&with_options, "maybe", None),
        (&text_question, " any text\n", Some(text_answer(" any text\n"))),
        (&text_question, "no", Some(text_answer("no"))),
        (&text_question, " \n", None),
        (&form_question, "yes", None),
    ] {
        assert_eq!(parse_answer(question, text), expected, "{text:?}");
    }
}
