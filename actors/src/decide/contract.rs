//! Judges an attempt that has ended, by the contracts of its program.
//!
//! No sentence that is made here holds output of the program but what it told as its failure.

use chrono::{DateTime, Utc};

use crate::decide::{prompt, trouble};
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::program::{Exit, OutputPattern, ProgramSpec};

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
    /// What it told of its end in events.
    pub told: Testimony,
    /// The time of its end.
    pub now: DateTime<Utc>,
}

/// What a program tells of its own end, besides its answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Testimony {
    /// The failure that it told, in words that may be shown.
    pub failure: Option<Failure>,
    /// The HTTP status with which what is behind it has answered it last, where that was an error.
    pub status: Option<u16>,
    /// Whether its output ends with a word that did not come.
    pub is_open: bool,
    /// The tools that it was not let use, in words that may be shown.
    pub denied: Vec<String>,
}

/// Decides whether an attempt succeeded. What a failed one means is told by the failure contract and
/// by what is known of statuses, whatever was wrong with it; but one that wanted a person would want
/// it again.
///
/// # Errors
/// The first thing that was wrong: the exit, what the program reported, a matching failure
/// pattern, a word for the end that did not come, a missing answer, an empty answer.
pub fn judge(program: &ProgramSpec, evidence: &Evidence<'_>) -> Result<(), Failure> {
    let Testimony { failure: reported, .. } = &evidence.told;
    let reported = || reported.clone().map_or(Ok(()), Err);
    let verdict = match program.output {
        // Its own word says more than its exit code.
        OutputPattern::Native(_) => reported().and_then(|()| exited(program, evidence.exit)),
        _ => exited(program, evidence.exit).and_then(|()| reported()),
    };
    let verdict = verdict
        .and_then(|()| unlike_a_failure(program, evidence))
        .and_then(|()| allowed(program, evidence))
        .and_then(|()| finished(evidence))
        .and_then(|()| answered(program, evidence));
    verdict.map_err(|failure| {
        if failure.code == Code::Exit && asked_in_vain(program, evidence) {
            return prompt::failure(); // Asked again it would ask again.
        }
        trouble::classify(program, evidence).unwrap_or(failure)
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

/// Who was let do nothing and says nothing has done nothing.
fn allowed(program: &ProgramSpec, evidence: &Evidence<'_>) -> Result<(), Failure> {
    let denied = &evidence.told.denied;
    if denied.is_empty() || !is_silent(evidence) || !must_answer(program) {
        return Ok(());
    }
    let message = format!("it was not let use {}, and answered nothing", denied.join(", "));
    Err(Failure::new(Code::Denied, message))
}

fn finished(evidence: &Evidence<'_>) -> Result<(), Failure> {
    if evidence.told.is_open {
        let message = "it ended without a word that it was done";
        return Err(Failure::new(Code::EndedEarly, message));
    }
    Ok(())
}

fn answered(program: &ProgramSpec, evidence: &Evidence<'_>) -> Result<(), Failure> {
    if evidence.answer.is_none() {
        return Err(Failure::new(Code::AnswerMissing, "the answer was not where it should be"));
    }
    if must_answer(program) && is_silent(evidence) {
        return Err(Failure::new(Code::EmptyAnswer, "the answer was empty"));
    }
    Ok(())
}

/// Programs of a known kind always do.
fn must_answer(program: &ProgramSpec) -> bool {
    program.success.require_output || matches!(program.output, OutputPattern::Native(_))
}

fn is_silent(evidence: &Evidence<'_>) -> bool {
    evidence.answer.is_none_or(|answer| answer.trim().is_empty()) && !evidence.has_more
}

#[cfg(test)]
pub(super) mod tests;
