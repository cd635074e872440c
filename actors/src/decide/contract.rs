//! Judges an attempt that has ended, by the contracts of its program.
//!
//! No sentence that is made here holds output of the program.

use crate::decide::prompt;
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::program::{Exit, ProgramSpec};

/// What an ended attempt left to judge it by. All text is raw.
#[derive(Debug, Clone)]
pub struct Evidence<'t> {
    /// How its process ended.
    pub exit: Exit,
    /// Its answer; `None` when the file or the place in the JSON document does not exist.
    pub answer: Option<&'t str>,
    /// Whether it gave something besides the answer's text: what it made, or a word for the end.
    pub has_more: bool,
    /// Its standard output, as far as it was kept.
    pub stdout: &'t str,
    /// Its standard error, as far as it was kept.
    pub stderr: &'t str,
    /// The failure it told in an event.
    pub reported: Option<Failure>,
}

/// Decides whether an attempt succeeded. A failed one that the transient contract matches, by its
/// exit code or by its text, is worth another attempt, whatever else was wrong with it; but not one
/// that wanted a person.
///
/// # Errors
/// The first thing that was wrong: the exit, what the program reported, a matching failure
/// pattern, a missing answer, an empty answer.
pub fn judge(program: &ProgramSpec, evidence: &Evidence<'_>) -> Result<(), Failure> {
    let verdict = exited(program, evidence.exit)
        .and_then(|()| evidence.reported.clone().map_or(Ok(()), Err))
        .and_then(|()| unlike_a_failure(program, evidence))
        .and_then(|()| answered(program, evidence));
    verdict.map_err(|failure| {
        if failure.code == Code::Exit && asked_in_vain(program, evidence) {
            return prompt::failure(); // Asked again it would ask again.
        }
        transient(program, evidence).unwrap_or(failure)
    })
}

fn asked_in_vain(program: &ProgramSpec, evidence: &Evidence<'_>) -> bool {
    prompt::wanted_a_person(&program.prompts, evidence.stdout, evidence.stderr)
}

/// Names the reason why a process could not be started, from the system's error number.
#[must_use]
pub fn spawn_failure(errno: i32) -> Failure {
    let (code, message) = match errno {
        EAGAIN => (Code::NoResources, "the machine has no room for another process"),
        ENOMEM => (Code::NoResources, "the machine has no memory for another process"),
        EMFILE | ENFILE => (Code::NoResources, "no more files can be opened"),
        ETXTBSY => (Code::NoResources, "the program is being written at this moment"),
        E2BIG => (Code::InputRejected, "arguments and environment are longer than a process takes"),
        ENOENT => (Code::NotStarted, "the program or its working folder does not exist"),
        EACCES | EPERM => (Code::NotStarted, "the program may not be executed"),
        ENOEXEC => (Code::NotStarted, "the program has no format that can be executed"),
        ENOTDIR => (Code::NotStarted, "a part of the program's path is not a folder"),
        other => return not_started(other),
    };
    Failure::new(code, message)
}

/// Why an execution's own files could not be written, from the system's error number.
#[must_use]
pub fn files_failure(errno: Option<i32>) -> Failure {
    match errno {
        Some(ENOSPC | EDQUOT) => {
            Failure::new(Code::NoResources, "the disk has no room for the agent's files")
        }
        Some(EMFILE | ENFILE) => Failure::new(Code::NoResources, "no more files can be opened"),
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

fn not_started(errno: i32) -> Failure {
    Failure::new(Code::NotStarted, format!("the program could not be started (error {errno})"))
}

fn exited(program: &ProgramSpec, exit: Exit) -> Result<(), Failure> {
    match exit {
        Exit::Signal(signal) => {
            Err(Failure::new(Code::Killed, format!("killed by signal {signal}")))
        }
        Exit::Code(code) if program.success.exit_codes.contains(&code) => Ok(()),
        Exit::Code(code) => Err(Failure::new(Code::Exit, format!("exited with code {code}"))),
    }
}

fn unlike_a_failure(program: &ProgramSpec, evidence: &Evidence<'_>) -> Result<(), Failure> {
    let Some(pattern) = &program.success.fail_regex else { return Ok(()) };
    let matched = evidence.answer.is_some_and(|text| pattern.is_match(text))
        || pattern.is_match(evidence.stderr);
    if matched {
        return Err(Failure::new(Code::FailPattern, "the output matched the failure pattern"));
    }
    Ok(())
}

fn answered(program: &ProgramSpec, evidence: &Evidence<'_>) -> Result<(), Failure> {
    let Some(answer) = evidence.answer else {
        return Err(Failure::new(Code::AnswerMissing, "the answer was not where it should be"));
    };
    if program.success.require_output && answer.trim().is_empty() && !evidence.has_more {
        return Err(Failure::new(Code::EmptyAnswer, "the answer was empty"));
    }
    Ok(())
}

/// The failure of an attempt that the transient contract matches. Asked of failed attempts only.
fn transient(program: &ProgramSpec, evidence: &Evidence<'_>) -> Option<Failure> {
    let contract = &program.transient;
    if let Exit::Code(code) = evidence.exit
        && contract.exit_codes.contains(&code)
        && !program.success.exit_codes.contains(&code)
    {
        let message = format!("exited with code {code}, which says that it may work later");
        return Some(Failure::new(Code::TransientFailure, message));
    }
    let pattern = contract.regex.as_ref()?;
    let texts = [evidence.answer.unwrap_or_default(), evidence.stdout, evidence.stderr];
    let matched = texts.into_iter().any(|text| pattern.is_match(text));
    let message = "the output matched the transient pattern";
    matched.then(|| Failure::new(Code::TransientFailure, message))
}

#[cfg(test)]
mod tests;
