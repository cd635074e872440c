//! Answers to questions: the check that an answer suits its question, and answers in plain text.

use super::answer_fault::{AnswerFault, MAX_ANSWER_BYTES};
use super::form;
use crate::model::interaction::{AnswerValue, OptionKind, Question, QuestionKind, QuestionOption};

/// Ids of the options of a confirmation for which the agent offers none.
pub const YES_OPTION_ID: &str = "yes";
/// See [`YES_OPTION_ID`].
pub const NO_OPTION_ID: &str = "no";

const ALLOWING_WORDS: [&str; 3] = [YES_OPTION_ID, "allow", "approve"];
const DENYING_WORDS: [&str; 3] = [NO_OPTION_ID, "deny", "reject"];

/// Checks that an answer suits its question, and returns the answer to store.
///
/// An option of a permission request becomes allow or deny. Also an option that would allow later calls allows this
/// one only.
///
/// # Errors
/// Returns the first fault of the answer.
pub fn check_answer(question: &Question, answer: &AnswerValue) -> Result<AnswerValue, AnswerFault> {
    use QuestionKind as Kind;
    match (question.kind, answer) {
        (Kind::ToolPermission | Kind::FileApproval, AnswerValue::Allow) => {}
        (Kind::ToolPermission | Kind::FileApproval, AnswerValue::Deny { reason }) => {
            check_length(reason.as_ref().map_or(0, String::len))?;
        }
        (Kind::ToolPermission | Kind::FileApproval, AnswerValue::Option { id }) => {
            return permission_answer_for(find_option(question, id)?.kind);
        }
        (Kind::Choice, AnswerValue::Option { id }) => _ = find_option(question, id)?,
        (Kind::Confirmation, AnswerValue::Option { id }) => check_confirmation(question, id)?,
        (Kind::Choice | Kind::TextInput, AnswerValue::Text { text }) => check_length(text.len())?,
        (Kind::Form, AnswerValue::Form { values }) => {
            check_length(values.to_string().len())?;
            form::check_form_values(question.schema.as_ref(), values)?;
        }
        (
            Kind::Choice | Kind::Confirmation | Kind::TextInput | Kind::Form,
            AnswerValue::Decline,
        ) => {}
        (kind, answer) => {
            return Err(AnswerFault::WrongKind {
                question: kind.as_str(),
                answer: answer.kind_name(),
            });
        }
    }
    Ok(answer.clone())
}

/// Reads an answer from plain text, as people write it in a conversation; `None` if the text is no answer.
///
/// The text is trimmed and compared without case with the ids and the names of the options, and with *yes*, *allow*,
/// *approve*, *no*, *deny* and *reject*. Other text answers only a choice and a question for text.
///
/// The agent chooses the names of its options. For a permission, the name of an option can therefore only deny, and
/// only the words *yes*, *allow* and *approve* allow, unless an option with this name denies.
#[must_use]
pub fn parse_answer(question: &Question, text: &str) -> Option<AnswerValue> {
    let word = text.trim().to_lowercase();
    if word.is_empty() {
        return None;
    }
    let answer = match question.kind {
        QuestionKind::ToolPermission | QuestionKind::FileApproval => {
            parse_permission(question, &word)?
        }
        QuestionKind::Confirmation => parse_confirmation(question, &word)?,
        QuestionKind::Choice => parse_option(question, &word)
            .unwrap_or_else(|| AnswerValue::Text { text: text.trim().to_owned() }),
        QuestionKind::TextInput => AnswerValue::Text { text: text.to_owned() },
        QuestionKind::Form => return None,
    };
    check_answer(question, &answer).ok()
}

fn parse_permission(question: &Question, word: &str) -> Option<AnswerValue> {
    if DENYING_WORDS.contains(&word) {
        return Some(AnswerValue::Deny { reason: None });
    }
    let matching_options = question.options.iter().filter(|it| has_name(it, word));
    let decisions: Vec<_> =
        matching_options.map(|option| permission_answer_for(option.kind)).collect();
    let denial = AnswerValue::Deny { reason: None };
    if decisions.contains(&Ok(denial.clone())) {
        return Some(denial);
    }
    // An option that neither allows nor denies is no answer to a request for permission.
    if decisions.iter().any(Result::is_err) {
        return None;
    }
    ALLOWING_WORDS.contains(&word).then_some(AnswerValue::Allow)
}

fn parse_confirmation(question: &Question, word: &str) -> Option<AnswerValue> {
    let named_option = parse_option(question, word);
    if named_option.is_some() {
        return named_option;
    }
    let (is_yes, is_no) = (ALLOWING_WORDS.contains(&word), DENYING_WORDS.contains(&word));
    if question.options.is_empty() && (is_yes || is_no) {
        let id = if is_yes { YES_OPTION_ID } else { NO_OPTION_ID };
        return Some(AnswerValue::Option { id: id.to_owned() });
    }
    // Options with other names: the only one of the kind that the word means.
    let matches_word = |option: &&QuestionOption| match option.kind {
        OptionKind::AllowOnce => is_yes,
        OptionKind::RejectOnce => is_no,
        OptionKind::AllowAlways | OptionKind::RejectAlways | OptionKind::Other => false,
    };
    single_option(question.options.iter().filter(matches_word))
}

/// Returns the only option with this id or name, in lower case.
fn parse_option(question: &Question, word: &str) -> Option<AnswerValue> {
    single_option(question.options.iter().filter(|option| has_name(option, word)))
}

fn single_option<'o>(mut options: impl Iterator<Item = &'o QuestionOption>) -> Option<AnswerValue> {
    let option = options.next()?;
    options.next().is_none().then(|| AnswerValue::Option { id: option.id.clone() })
}

fn has_name(option: &QuestionOption, word: &str) -> bool {
    [&option.id, &option.name].iter().any(|name| name.trim().to_lowercase() == word)
}

fn find_option<'q>(question: &'q Question, id: &str) -> Result<&'q QuestionOption, AnswerFault> {
    let mut options_with_id = question.options.iter().filter(|option| option.id == id);
    let first = options_with_id.next().ok_or(AnswerFault::UnknownOption)?;
    // Options with one id and two meanings: the person cannot have seen which is meant.
    if options_with_id.any(|other| other.kind != first.kind) {
        return Err(AnswerFault::UnclearOption);
    }
    Ok(first)
}

fn permission_answer_for(kind: OptionKind) -> Result<AnswerValue, AnswerFault> {
    match kind {
        OptionKind::AllowOnce | OptionKind::AllowAlways => Ok(AnswerValue::Allow),
        OptionKind::RejectOnce | OptionKind::RejectAlways => Ok(AnswerValue::Deny { reason: None }),
        OptionKind::Other => Err(AnswerFault::UnclearOption),
    }
}

fn check_confirmation(question: &Question, id: &str) -> Result<(), AnswerFault> {
    if question.options.is_empty() && [YES_OPTION_ID, NO_OPTION_ID].contains(&id) {
        return Ok(());
    }
    find_option(question, id).map(|_| ())
}

const fn check_length(bytes: usize) -> Result<(), AnswerFault> {
    if bytes > MAX_ANSWER_BYTES { Err(AnswerFault::TooLong) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
