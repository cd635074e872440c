//! Evaluation of an ended attempt by the contracts of its program.
//!
//! The sentences in this module contain no output of the program except its own failure report and a line that could
//! not be read, both redacted.

pub use crate::decide::classify::attempt_outcome::{
    AttemptOutcome, MissingAnswer, ReportedResult, UnreadableLine,
};
use crate::decide::classify::{failure_classification, tty_prompt_detection};
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::program::{OutputMethod, ProcessExit, ProgramSpec};

/// Decides whether an attempt succeeded. The failure rules and the known status codes classify a failed attempt,
/// whatever its first fault was; an attempt that waited for a person is never classified as transient, because a retry
/// would wait again.
///
/// # Errors
/// Returns the first fault: the exit status, the reported failure, a matching failure pattern, a lost part of the
/// result, denied tools, a line that could not be read where the final event or the answer is missing, a missing final
/// event, a missing answer, an empty answer.
pub fn evaluate_attempt(
    program: &ProgramSpec,
    attempt_outcome: &AttemptOutcome<'_>,
) -> Result<(), Failure> {
    let ReportedResult { failure: reported_failure, .. } = &attempt_outcome.reported_result;
    let check_reported = || reported_failure.clone().map_or(Ok(()), Err);
    let result = match program.output_method {
        // The report of such a program is more specific than its exit code.
        OutputMethod::Native(_) => {
            check_reported().and_then(|()| check_exit(program, attempt_outcome.exit))
        }
        _ => check_exit(program, attempt_outcome.exit).and_then(|()| check_reported()),
    };
    let result = result
        .and_then(|()| check_fail_pattern(program, attempt_outcome))
        .and_then(|()| check_lost_result(attempt_outcome))
        .and_then(|()| check_denied_tools(program, attempt_outcome))
        .and_then(|()| check_unreadable_line(attempt_outcome))
        .and_then(|()| check_final_event(attempt_outcome))
        .and_then(|()| check_answer(program, attempt_outcome));
    result.map_err(|failure| {
        if failure.code == Code::Exit && failed_at_prompt(program, attempt_outcome) {
            return tty_prompt_detection::prompt_failure(); // A retry would ask again.
        }
        failure_classification::classify_failure(program, attempt_outcome).unwrap_or(failure)
    })
}

fn failed_at_prompt(program: &ProgramSpec, attempt_outcome: &AttemptOutcome<'_>) -> bool {
    tty_prompt_detection::has_unanswered_prompt(
        &program.prompt_patterns,
        attempt_outcome.stdout,
        attempt_outcome.stderr,
    )
}

/// Returns the failure of a process that could not be started, from the system's error number.
#[must_use]
pub fn spawn_failure(errno: i32) -> Failure {
    let (code, message) = match errno {
        EAGAIN => (Code::NoResources, "the machine has no room for another process"),
        ENOMEM => (Code::NoResources, "the machine has no memory for another process"),
        EMFILE | ENFILE => (Code::NoResources, "the limit of open files is reached"),
        ETXTBSY => (Code::NoResources, "the program is being written at this moment"),
        E2BIG => (Code::InputRejected, "arguments and environment are longer than a process takes"),
        ENOENT => (Code::NotStarted, "the program or its working folder does not exist"),
        EACCES | EPERM => (Code::NotStarted, "the program may not be executed"),
        ENOEXEC => (Code::NotStarted, "the program has no format that can be executed"),
        ENOTDIR => (Code::NotStarted, "a part of the program's path is not a folder"),
        other => return other_spawn_failure(other),
    };
    Failure::new(code, message)
}

/// Returns the failure of an execution whose own files could not be written, from the system's error number.
#[must_use]
pub fn file_write_failure(errno: Option<i32>) -> Failure {
    match errno {
        Some(ENOSPC | EDQUOT) => {
            Failure::new(Code::NoResources, "the disk has no room for the agent's files")
        }
        Some(EMFILE | ENFILE) => {
            Failure::new(Code::NoResources, "the limit of open files is reached")
        }
        _ => Failure::new(Code::Internal, "the agent's files could not be written"),
    }
}

const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const E2BIG: i32 = 7;
const ENOEXEC: i32 = 8;
const EAGAIN: i32 = 11;
const ENOMEM: i32 = 12;
const EACCES: i32 = 13;
const ENOSPC: i32 = 28;
const EDQUOT: i32 = 122;
const ENOTDIR: i32 = 20;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const ETXTBSY: i32 = 26;

fn other_spawn_failure(errno: i32) -> Failure {
    Failure::new(Code::NotStarted, format!("the program could not be started (error {errno})"))
}

fn check_exit(program: &ProgramSpec, exit: ProcessExit) -> Result<(), Failure> {
    match exit {
        ProcessExit::Signal(signal) => {
            Err(Failure::new(Code::Killed, format!("killed by signal {signal}")))
        }
        ProcessExit::Code(code) if program.success_criteria.exit_codes.contains(&code) => Ok(()),
        ProcessExit::Code(code) => {
            Err(Failure::new(Code::Exit, format!("exited with code {code}")))
        }
    }
}

fn check_fail_pattern(
    program: &ProgramSpec,
    attempt_outcome: &AttemptOutcome<'_>,
) -> Result<(), Failure> {
    let Some(pattern) = &program.success_criteria.fail_regex else { return Ok(()) };
    let is_match = attempt_outcome.answer.is_ok_and(|text| pattern.is_match(text))
        || pattern.is_match(attempt_outcome.stderr);
    if is_match {
        return Err(Failure::new(Code::FailPattern, "the output matched the failure pattern"));
    }
    Ok(())
}

/// Rejects an attempt that lost a part of its result with a line that could not be read.
fn check_lost_result(attempt_outcome: &AttemptOutcome<'_>) -> Result<(), Failure> {
    let unreadable_line = attempt_outcome.reported_result.unreadable_line.as_ref();
    let lost_line = unreadable_line.filter(|unread_line| unread_line.is_result_lost);
    lost_line.map_or(Ok(()), |lost_line| Err(lost_line.to_failure()))
}

/// Rejects an attempt without an answer or without its final event if a line of its output could not be read: an answer
/// that cannot be read is not an empty answer.
fn check_unreadable_line(attempt_outcome: &AttemptOutcome<'_>) -> Result<(), Failure> {
    let ReportedResult { unreadable_line, lacks_final_event, .. } =
        &attempt_outcome.reported_result;
    let Some(unreadable_line) = unreadable_line else { return Ok(()) };
    if *lacks_final_event || has_no_output(attempt_outcome) {
        return Err(unreadable_line.to_failure());
    }
    Ok(())
}

/// Rejects a silent attempt whose tools were denied, because it cannot have done the work.
fn check_denied_tools(
    program: &ProgramSpec,
    attempt_outcome: &AttemptOutcome<'_>,
) -> Result<(), Failure> {
    let denied_tools = &attempt_outcome.reported_result.denied_tools;
    if denied_tools.is_empty() || !has_no_output(attempt_outcome) || !requires_answer(program) {
        return Ok(());
    }
    let message = format!("it was not let use {}, and answered nothing", denied_tools.join(", "));
    Err(Failure::new(Code::Denied, message))
}

fn check_final_event(attempt_outcome: &AttemptOutcome<'_>) -> Result<(), Failure> {
    if attempt_outcome.reported_result.lacks_final_event {
        let message = "it ended without reporting its result";
        return Err(Failure::new(Code::EndedEarly, message));
    }
    Ok(())
}

fn check_answer(
    program: &ProgramSpec,
    attempt_outcome: &AttemptOutcome<'_>,
) -> Result<(), Failure> {
    attempt_outcome.answer.map_err(MissingAnswer::to_failure)?;
    if requires_answer(program) && has_no_output(attempt_outcome) {
        return Err(Failure::new(Code::EmptyAnswer, "the answer was empty"));
    }
    Ok(())
}

/// Returns true if the answer must not be empty. Programs with a native event format always answer.
fn requires_answer(program: &ProgramSpec) -> bool {
    program.success_criteria.require_output
        || matches!(program.output_method, OutputMethod::Native(_))
}

fn has_no_output(attempt_outcome: &AttemptOutcome<'_>) -> bool {
    attempt_outcome.answer.unwrap_or_default().trim().is_empty()
        && !attempt_outcome.has_other_output
}

#[cfg(test)]
pub(in crate::decide) mod tests;
