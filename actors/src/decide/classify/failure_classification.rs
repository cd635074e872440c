//! Classification of a failed attempt: whether the failure is transient, when it passes, and who can act on it.
//!
//! Certain facts take precedence over guesses: first a parsed status code, then the program's own event, then its exit
//! code, then its text.

use chrono::{DateTime, Utc};

use super::attempt_outcome::AttemptOutcome;
use super::{http_status_parser, quota_reset_parser};
use crate::decide::retry::quota::SHORT;
use crate::model::agent::success_criteria::{FailureContract, FailureMatchers};
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::program::{OutputPattern, ProgramSpec};

/// Program with the results of an attempt.
type Case<'c> = (&'c ProgramSpec, &'c AttemptOutcome<'c>);

/// Classifies a failed attempt.
pub(in crate::decide) fn classify(
    program: &ProgramSpec,
    evidence: &AttemptOutcome<'_>,
) -> Option<Failure> {
    let case = (program, evidence);
    by_status(case)
        .or_else(|| by_event(case))
        .or_else(|| by_exit(case))
        .or_else(|| by_text(case))
        .or_else(|| by_complaint(case))
}

/// Classifies by status code. The contract takes precedence over the usual meaning of a status code, except for
/// rejected credentials: a retry with the same credential is useless.
fn by_status((program, evidence): Case<'_>) -> Option<Failure> {
    let status = evidence.told.status.or_else(|| in_words(program, evidence))?;
    meaning(status, (program, evidence))
}

/// Returns the status code in the text of a program without structured events, if its contract uses status codes.
fn in_words(program: &ProgramSpec, evidence: &AttemptOutcome<'_>) -> Option<u16> {
    let is_asked = program.failures.has_status() && !has_records(program);
    if !is_asked {
        return None;
    }
    http_status_parser::find(evidence.stderr).or_else(|| http_status_parser::find(evidence.stdout))
}

fn meaning(status: u16, (program, evidence): Case<'_>) -> Option<Failure> {
    let named = named(&program.failures, |signs| signs.status.contains(&status));
    let code = match (status, named) {
        (401 | 403, _) => Code::NotAuthenticated,
        (_, Some(Code::PermanentFailure)) => Code::PermanentFailure,
        (429, named) => limited(named, (program, evidence)),
        (503 | 529, None | Some(Code::TransientFailure)) => Code::AgentOverloaded,
        (_, named) => named.or_else(|| usual(status))?,
    };
    Some(failed(
        code,
        (program, evidence),
        &format!("what is behind it answered with status {status}"),
    ))
}

/// Returns the usual meaning of a status code.
const fn usual(status: u16) -> Option<Code> {
    match status {
        402 => Some(Code::QuotaExceeded),
        408 | 409 | 425 | 500..600 => Some(Code::TransientFailure),
        400..500 => Some(Code::PermanentFailure),
        _ => None,
    }
}

/// Distinguishes a rate limit from an exhausted quota: both have status code 429. A short time decides for a rate
/// limit, because providers also write `quota` about limits per minute; without a time the contract and the program's
/// text decide.
fn limited(named: Option<Code>, (program, evidence): Case<'_>) -> Code {
    let lasts = until(program, evidence).map(|until| until - evidence.now);
    let is_quota = match lasts.and_then(|lasts| lasts.to_std().ok()) {
        Some(lasts) => lasts > SHORT,
        None => named == Some(Code::QuotaExceeded) || is_said_used_up((program, evidence)),
    };
    if is_quota { Code::QuotaExceeded } else { Code::AgentRateLimited }
}

fn is_said_used_up((program, evidence): Case<'_>) -> bool {
    let told = evidence.told.failure.as_ref();
    let pattern = program.failures.quota.regex.as_ref();
    let stdout = if has_records(program) { "" } else { evidence.stdout };
    let texts = [told.map_or("", |told| &told.message), evidence.stderr, stdout];
    told.is_some_and(|told| told.code == Code::QuotaExceeded)
        || texts.iter().any(|text| {
            pattern.is_some_and(|pattern| pattern.is_match(text))
                || http_status_parser::is_quota(text)
        })
}

/// Classifies by the program's own event, if it is more specific than a plain failure. A missing answer is a finding of
/// the service.
fn by_event((program, evidence): Case<'_>) -> Option<Failure> {
    let told = evidence.told.failure.as_ref()?;
    let code = match told.code {
        Code::Reported | Code::AnswerMissing => return None,
        // The category of a native event was guessed from its text.
        Code::QuotaExceeded if has_records(program) => {
            limited(Some(Code::QuotaExceeded), (program, evidence))
        }
        code => code,
    };
    Some(failed(code, (program, evidence), &told.message))
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
    let matches = |signs: &FailureMatchers| {
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

/// Classifies by the standard error of a program with structured events, if nothing else is known.
fn by_complaint((program, evidence): Case<'_>) -> Option<Failure> {
    if !has_records(program) {
        return None;
    }
    let status = http_status_parser::find(evidence.stderr)
        .or_else(|| http_status_parser::in_words(evidence.stderr))?;
    meaning(status, (program, evidence))
}

/// Returns the first matching kind. Permanent failures come first, so that they are not retried in vain.
fn named(contract: &FailureContract, has_sign: impl Fn(&FailureMatchers) -> bool) -> Option<Code> {
    let FailureContract { transient, permanent, quota, .. } = contract;
    let kinds = [
        (permanent, Code::PermanentFailure),
        (quota, Code::QuotaExceeded),
        (transient, Code::TransientFailure),
    ];
    kinds.into_iter().find(|(signs, _)| has_sign(signs)).map(|(_, code)| code)
}

/// Creates the failure, with the program's own message if there is one.
fn failed(code: Code, (program, evidence): Case<'_>, sentence: &str) -> Failure {
    let told = evidence.told.failure.as_ref().map(|told| told.message.as_str());
    let failure = Failure::new(code, told.unwrap_or(sentence));
    let is_timed =
        matches!(code, Code::QuotaExceeded | Code::AgentRateLimited | Code::AgentOverloaded);
    let until = if is_timed { until(program, evidence) } else { None };
    let Some(until) = until else { return failure };
    let message = format!("{} (until {})", failure.message, until.format("%Y-%m-%dT%H:%M:%SZ"));
    Failure { message, ..failure }.until(until)
}

/// Returns the time at which the failure passes, from an event or from the text. Structured output is not searched,
/// because it contains times of all kinds.
fn until(program: &ProgramSpec, evidence: &AttemptOutcome<'_>) -> Option<DateTime<Utc>> {
    let told = evidence.told.failure.as_ref();
    let in_text = |text: &str| quota_reset_parser::find(text, evidence.now);
    told.and_then(|told| told.until.or_else(|| in_text(&told.message)))
        .or_else(|| in_text(evidence.stderr))
        .or_else(|| if has_records(program) { None } else { in_text(evidence.stdout) })
}

fn has_records(program: &ProgramSpec) -> bool {
    matches!(program.output, OutputPattern::Native(_))
}

#[cfg(test)]
mod tests;
