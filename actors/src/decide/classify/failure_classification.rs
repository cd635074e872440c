//! Classification of a failed attempt: whether the failure is transient, when it passes, and who can act on it.
//!
//! Certain facts take precedence over guesses: first a parsed status code, then the program's own event, then its exit
//! code, then its text.

use chrono::{DateTime, Utc};

use super::attempt_outcome::AttemptOutcome;
use super::{http_status_parser, quota_reset_parser};
use crate::decide::retry::deferral::MAX_RATE_LIMIT_WAIT;
use crate::model::agent::success_criteria::{FailureMatchers, FailureRules};
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::program::{OutputMethod, ProgramSpec};

/// Program with the results of an attempt.
type ProgramAndOutcome<'c> = (&'c ProgramSpec, &'c AttemptOutcome<'c>);

/// Classifies a failed attempt.
pub(in crate::decide) fn classify_failure(
    program: &ProgramSpec,
    attempt_outcome: &AttemptOutcome<'_>,
) -> Option<Failure> {
    let case = (program, attempt_outcome);
    classify_by_status(case)
        .or_else(|| classify_by_event(case))
        .or_else(|| classify_by_exit(case))
        .or_else(|| classify_by_text(case))
        .or_else(|| classify_by_stderr(case))
}

/// Classifies by status code. The failure rules take precedence over the usual meaning of a status code, except for
/// rejected credentials: a retry with the same credential is useless.
fn classify_by_status((program, attempt_outcome): ProgramAndOutcome<'_>) -> Option<Failure> {
    let status = attempt_outcome
        .reported_result
        .http_status
        .or_else(|| status_in_text(program, attempt_outcome))?;
    failure_of_status(status, (program, attempt_outcome))
}

/// Returns the status code in the text of a program without structured events, if its failure rules use status codes.
fn status_in_text(program: &ProgramSpec, attempt_outcome: &AttemptOutcome<'_>) -> Option<u16> {
    let uses_status_codes = program.failure_rules.uses_http_status() && !has_native_events(program);
    if !uses_status_codes {
        return None;
    }
    http_status_parser::find_last_status(attempt_outcome.stderr)
        .or_else(|| http_status_parser::find_last_status(attempt_outcome.stdout))
}

fn failure_of_status(
    status: u16,
    (program, attempt_outcome): ProgramAndOutcome<'_>,
) -> Option<Failure> {
    let matched_code =
        matching_code(&program.failure_rules, |matchers| matchers.http_statuses.contains(&status));
    let code = match (status, matched_code) {
        (401 | 403, _) => Code::NotAuthenticated,
        (_, Some(Code::PermanentFailure)) => Code::PermanentFailure,
        (429, matched_code) => quota_or_rate_limit(matched_code, (program, attempt_outcome)),
        (503 | 529, None | Some(Code::TransientFailure)) => Code::AgentOverloaded,
        (_, matched_code) => matched_code.or_else(|| default_code(status))?,
    };
    Some(classified_failure(
        code,
        (program, attempt_outcome),
        &format!("what is behind it answered with status {status}"),
    ))
}

/// Returns the usual meaning of a status code.
const fn default_code(status: u16) -> Option<Code> {
    match status {
        402 => Some(Code::QuotaExceeded),
        408 | 409 | 425 | 500..600 => Some(Code::TransientFailure),
        400..500 => Some(Code::PermanentFailure),
        _ => None,
    }
}

/// Distinguishes a rate limit from an exhausted quota: both have status code 429. A short time decides for a rate
/// limit, because providers also write `quota` about limits per minute; without a time the failure rules and the
/// program's text decide.
fn quota_or_rate_limit(
    matched_code: Option<Code>,
    (program, attempt_outcome): ProgramAndOutcome<'_>,
) -> Code {
    let retry_after =
        reset_time(program, attempt_outcome).map(|until| until - attempt_outcome.ended_at);
    let is_quota = match retry_after.and_then(|retry_after| retry_after.to_std().ok()) {
        Some(retry_after) => retry_after > MAX_RATE_LIMIT_WAIT,
        None => {
            matched_code == Some(Code::QuotaExceeded)
                || reports_exhausted_quota((program, attempt_outcome))
        }
    };
    if is_quota { Code::QuotaExceeded } else { Code::AgentRateLimited }
}

fn reports_exhausted_quota((program, attempt_outcome): ProgramAndOutcome<'_>) -> bool {
    let reported_failure = attempt_outcome.reported_result.failure.as_ref();
    let pattern = program.failure_rules.quota.regex.as_ref();
    let stdout = if has_native_events(program) { "" } else { attempt_outcome.stdout };
    let texts = [
        reported_failure.map_or("", |reported_failure| &reported_failure.message),
        attempt_outcome.stderr,
        stdout,
    ];
    reported_failure.is_some_and(|reported_failure| reported_failure.code == Code::QuotaExceeded)
        || texts.iter().any(|text| {
            pattern.is_some_and(|pattern| pattern.is_match(text))
                || http_status_parser::reports_quota(text)
        })
}

/// Classifies by the program's own event, if it is more specific than a plain failure. A missing answer is a finding of
/// the service.
fn classify_by_event((program, attempt_outcome): ProgramAndOutcome<'_>) -> Option<Failure> {
    let reported_failure = attempt_outcome.reported_result.failure.as_ref()?;
    let code = match reported_failure.code {
        Code::Reported
        | Code::AnswerMissing
        | Code::OutputUnreadable
        | Code::OutputTooLarge
        | Code::SessionNotOpened => return None,
        // The category of a native event was guessed from its text.
        Code::QuotaExceeded if has_native_events(program) => {
            quota_or_rate_limit(Some(Code::QuotaExceeded), (program, attempt_outcome))
        }
        code => code,
    };
    Some(classified_failure(code, (program, attempt_outcome), &reported_failure.message))
}

fn classify_by_exit((program, attempt_outcome): ProgramAndOutcome<'_>) -> Option<Failure> {
    let code = attempt_outcome.exit.code()?;
    if program.success_criteria.exit_codes.contains(&code) {
        return None;
    }
    let matched_code =
        matching_code(&program.failure_rules, |matchers| matchers.exit_codes.contains(&code))?;
    let meaning = match matched_code {
        Code::TransientFailure => "it may work later",
        Code::QuotaExceeded => "its quota is used up",
        _ => "it will not work later either",
    };
    Some(classified_failure(
        matched_code,
        (program, attempt_outcome),
        &format!("exited with code {code}, which says that {meaning}"),
    ))
}

fn classify_by_text((program, attempt_outcome): ProgramAndOutcome<'_>) -> Option<Failure> {
    let texts = [
        attempt_outcome.answer.unwrap_or_default(),
        attempt_outcome.stdout,
        attempt_outcome.stderr,
    ];
    let matches = |matchers: &FailureMatchers| {
        let pattern = matchers.regex.as_ref();
        pattern.is_some_and(|pattern| texts.iter().any(|text| pattern.is_match(text)))
    };
    let matched_code = matching_code(&program.failure_rules, matches)?;
    let pattern_kind = match matched_code {
        Code::TransientFailure => "transient",
        Code::QuotaExceeded => "quota",
        _ => "permanent",
    };
    Some(classified_failure(
        matched_code,
        (program, attempt_outcome),
        &format!("the output matched the {pattern_kind} pattern"),
    ))
}

/// Classifies by the standard error of a program with structured events, if nothing else is known.
fn classify_by_stderr((program, attempt_outcome): ProgramAndOutcome<'_>) -> Option<Failure> {
    if !has_native_events(program) {
        return None;
    }
    let status = http_status_parser::find_last_status(attempt_outcome.stderr)
        .or_else(|| http_status_parser::status_from_words(attempt_outcome.stderr))?;
    failure_of_status(status, (program, attempt_outcome))
}

/// Returns the first matching kind. Permanent failures come first, so that they are not retried in vain.
fn matching_code(
    rules: &FailureRules,
    is_match: impl Fn(&FailureMatchers) -> bool,
) -> Option<Code> {
    let FailureRules { transient, permanent, quota, .. } = rules;
    let matchers_with_codes = [
        (permanent, Code::PermanentFailure),
        (quota, Code::QuotaExceeded),
        (transient, Code::TransientFailure),
    ];
    matchers_with_codes.into_iter().find(|(matchers, _)| is_match(matchers)).map(|(_, code)| code)
}

/// Creates the failure, with the program's own message if there is one.
fn classified_failure(
    code: Code,
    (program, attempt_outcome): ProgramAndOutcome<'_>,
    default_message: &str,
) -> Failure {
    let reported =
        attempt_outcome.reported_result.failure.as_ref().map(|reported| reported.message.as_str());
    let failure = Failure::new(code, reported.unwrap_or(default_message));
    let has_reset_time =
        matches!(code, Code::QuotaExceeded | Code::AgentRateLimited | Code::AgentOverloaded);
    let until = if has_reset_time { reset_time(program, attempt_outcome) } else { None };
    let Some(until) = until else { return failure };
    let message = format!("{} (until {})", failure.message, until.format("%Y-%m-%dT%H:%M:%SZ"));
    Failure { message, ..failure }.with_until(until)
}

/// Returns the time at which the failure passes, from an event or from the text. Structured output is not searched,
/// because it contains times of all kinds.
fn reset_time(
    program: &ProgramSpec,
    attempt_outcome: &AttemptOutcome<'_>,
) -> Option<DateTime<Utc>> {
    let reported_failure = attempt_outcome.reported_result.failure.as_ref();
    let find_in_text =
        |text: &str| quota_reset_parser::find_reset_time(text, attempt_outcome.ended_at);
    reported_failure
        .and_then(|reported_failure| {
            reported_failure.until.or_else(|| find_in_text(&reported_failure.message))
        })
        .or_else(|| find_in_text(attempt_outcome.stderr))
        .or_else(|| {
            if has_native_events(program) { None } else { find_in_text(attempt_outcome.stdout) }
        })
}

fn has_native_events(program: &ProgramSpec) -> bool {
    matches!(program.output_method, OutputMethod::Native(_))
}

#[cfg(test)]
mod tests;
