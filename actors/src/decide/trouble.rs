//! What the failure of an attempt means: whether it may pass, when, and whose turn it is.
//!
//! What is known for sure goes before what is guessed: a parsed status, then what the program told in
//! an event, then its exit code, then what stands in its text.

use super::contract::Evidence;
use super::{reset, status};
use crate::model::code::Code;
use crate::model::contract::{FailureContract, Signs};
use crate::model::failure::Failure;
use crate::model::program::{OutputPattern, ProgramSpec};

/// A program, and what an attempt of it left.
type Case<'c> = (&'c ProgramSpec, &'c Evidence<'c>);

/// What a failed attempt is known to be. Asked of failed attempts only.
pub(super) fn classify(program: &ProgramSpec, evidence: &Evidence<'_>) -> Option<Failure> {
    let case = (program, evidence);
    by_status(case)
        .or_else(|| by_event(case))
        .or_else(|| by_exit(case))
        .or_else(|| by_text(case))
        .or_else(|| by_complaint(case))
}

/// What the contract names goes before what a status usually means, but for credentials that are
/// refused: nothing is won by showing them again.
fn by_status((program, evidence): Case<'_>) -> Option<Failure> {
    let status = evidence.told.status.or_else(|| in_words(program, evidence))?;
    meaning(status, (program, evidence))
}

/// The status in the words of a program that tells nothing but words, where its contract asks for
/// statuses.
fn in_words(program: &ProgramSpec, evidence: &Evidence<'_>) -> Option<u16> {
    let is_asked = program.failures.has_status() && !has_records(program);
    if !is_asked {
        return None;
    }
    status::find(evidence.stderr).or_else(|| status::find(evidence.stdout))
}

fn meaning(status: u16, (program, evidence): Case<'_>) -> Option<Failure> {
    let named = named(&program.failures, |signs| signs.status.contains(&status));
    let code = match status {
        401 | 403 => Code::NotAuthenticated,
        _ => named.or_else(|| usual(status, (program, evidence)))?,
    };
    Some(failed(
        code,
        (program, evidence),
        &format!("what is behind it answered with status {status}"),
    ))
}

/// What a status means where nobody says otherwise.
fn usual(status: u16, (program, evidence): Case<'_>) -> Option<Code> {
    match status {
        402 => Some(Code::QuotaExceeded),
        429 if until(program, evidence).is_some() => Some(Code::QuotaExceeded),
        408 | 409 | 425 | 429 | 500..600 => Some(Code::TransientFailure),
        400..500 => Some(Code::PermanentFailure),
        _ => None,
    }
}

/// Its own word, where that is more than that it failed; that it fell silent is ours.
fn by_event((program, evidence): Case<'_>) -> Option<Failure> {
    let told = evidence.told.failure.as_ref()?;
    let is_more = !matches!(told.code, Code::Reported | Code::AnswerMissing);
    is_more.then(|| failed(told.code, (program, evidence), &told.message))
}

fn by_exit((program, evidence): Case<'_>) -> Option<Failure> {
    let code = evidence.exit.code()?;
    if program.success.exit_codes.contains(&code) {
        return None;
    }
    let named = named(&program.failures, |signs| signs.exit_codes.contains(&code))?;
    let meaning = match named {
        Code::TransientFailure => "it may work later",
        Code::QuotaExceeded => "its quota is used up",
        _ => "it will not work later either",
    };
    Some(failed(
        named,
        (program, evidence),
        &format!("exited with code {code}, which says that {meaning}"),
    ))
}

fn by_text((program, evidence): Case<'_>) -> Option<Failure> {
    let texts = [evidence.answer.unwrap_or_default(), evidence.stdout, evidence.stderr];
    let matches = |signs: &Signs| {
        let pattern = signs.regex.as_ref();
        pattern.is_some_and(|pattern| texts.iter().any(|text| pattern.is_match(text)))
    };
    let named = named(&program.failures, matches)?;
    let pattern = match named {
        Code::TransientFailure => "transient",
        Code::QuotaExceeded => "quota",
        _ => "permanent",
    };
    Some(failed(named, (program, evidence), &format!("the output matched the {pattern} pattern")))
}

/// What a program that records its work complains of beside it, where nothing else tells anything.
fn by_complaint((program, evidence): Case<'_>) -> Option<Failure> {
    let status = status::find(evidence.stderr).filter(|_| has_records(program))?;
    meaning(status, (program, evidence))
}

/// The first of the three that has the sign. What will not pass is not tried again in vain.
fn named(contract: &FailureContract, has_sign: impl Fn(&Signs) -> bool) -> Option<Code> {
    let FailureContract { transient, permanent, quota } = contract;
    let kinds = [
        (permanent, Code::PermanentFailure),
        (quota, Code::QuotaExceeded),
        (transient, Code::TransientFailure),
    ];
    kinds.into_iter().find(|(signs, _)| has_sign(signs)).map(|(_, code)| code)
}

/// The failure, in the program's own words where it told some.
fn failed(code: Code, (program, evidence): Case<'_>, sentence: &str) -> Failure {
    let told = evidence.told.failure.as_ref().map(|told| told.message.as_str());
    let failure = Failure::new(code, told.unwrap_or(sentence));
    let until = if code == Code::QuotaExceeded { until(program, evidence) } else { None };
    let Some(until) = until else { return failure };
    let message = format!("{} (until {})", failure.message, until.format("%Y-%m-%dT%H:%M:%SZ"));
    Failure { message, ..failure }.until(until)
}

/// When it will pass, as an event or the text says. What a program records of its work has times of
/// all kinds in it.
fn until(program: &ProgramSpec, evidence: &Evidence<'_>) -> Option<chrono::DateTime<chrono::Utc>> {
    let told = evidence.told.failure.as_ref();
    let in_text = |text: &str| reset::find(text, evidence.now);
    told.and_then(|told| told.until.or_else(|| in_text(&told.message)))
        .or_else(|| in_text(evidence.stderr))
        .or_else(|| if has_records(program) { None } else { in_text(evidence.stdout) })
}

fn has_records(program: &ProgramSpec) -> bool {
    matches!(program.output, OutputPattern::Native(_))
}

#[cfg(test)]
mod tests;
