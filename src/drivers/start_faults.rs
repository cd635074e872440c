//! Causes for which a program could not be started. The kernel reports several causes with one error, so each is looked
//! up after the failure.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs, io};

use algonius_actors::decide::classify::success_evaluation::{
    AttemptOutcome, evaluate_attempt, spawn_failure,
};
use algonius_actors::decide::host::refusal::refuse_for_faults;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::host::host_fault::HostFault;
use algonius_actors::model::program::ProgramSpec;
use nix::unistd::{AccessFlags, access};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::platform::program_file::ProgramFault;

/// Exit code by which `env` reports that it does not find a program.
const NOT_FOUND_EXIT_CODE: i32 = 127;

/// Time limit for the search for a cause. An agent may have put its program, or an interpreter, on a file system of its
/// own that never answers.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(1);

/// Greatest number of concurrent searches. A search that never ends occupies a thread.
static SEARCHES: Semaphore = Semaphore::const_new(4);

/// Converts an error of `Warden::launch` into a failure.
pub(in crate::drivers) fn launch_failure(error: &io::Error) -> Failure {
    match (error.raw_os_error(), error.kind()) {
        (Some(errno), _) => Some(spawn_failure(errno)),
        (None, io::ErrorKind::ConnectionAborted) => {
            Some(Failure::new(Code::Interrupted, "its process holder was lost"))
        }
        (None, io::ErrorKind::NotConnected) => refuse_for_faults(&[HostFault::ProcessHolder]),
        (None, _) => None,
    }
    .unwrap_or_else(|| Failure::new(Code::NotStarted, "the program could not be started"))
}

/// Returns an error if the service may not execute the program. A wrapper could report this only as text.
///
/// # Errors
/// `agent-not-started`, and `no-resources` if the file is being written.
pub(in crate::drivers) fn check_executable(program: &Path) -> Result<(), Failure> {
    access(program, AccessFlags::X_OK).map_err(|errno| spawn_failure(errno as i32))
}

/// Replaces the failure of a wrapper that could not execute the program, if the file of the program is the cause.
pub(in crate::drivers) async fn explain_failed_wrapper(
    failure: Failure,
    program: &Path,
) -> Failure {
    let program = program.to_owned();
    // The wrapper executes files of other formats by a shell.
    let find =
        move || ProgramFault::find_definite(&program, None).filter(|fault| !fault.is_format());
    let fault = run_bounded(find).await.flatten();
    fault.map_or(failure, |fault| unexecutable_failure(&fault))
}

/// Replaces the failure of a start by its cause, if the working folder or the file of the program is the cause.
/// `missing_failure` is the failure of a program that does not exist.
pub(in crate::drivers) async fn explain_failed_start(
    failure: Failure,
    program: &Path,
    (working_dir, search_path): (PathBuf, Option<String>),
    missing_failure: impl FnOnce() -> Failure,
) -> Failure {
    if failure.code != Code::NotStarted {
        return failure;
    }
    let program = program.to_owned();
    let search = move || match program.try_exists() {
        Ok(false) => StartCause::MissingProgram,
        _ => find_folder_failure(&working_dir)
            .or_else(|| {
                let fault = ProgramFault::find_definite(&program, search_path.as_deref())?;
                Some(unexecutable_failure(&fault))
            })
            .map_or(StartCause::Unknown, StartCause::Found),
    };
    match run_bounded(search).await {
        Some(StartCause::MissingProgram) => missing_failure(),
        Some(StartCause::Found(cause)) => cause,
        Some(StartCause::Unknown) | None => failure,
    }
}

/// Evaluates an attempt whose program has ended. Names the missing interpreter of a script if `env` did not find it.
pub(in crate::drivers) async fn evaluate_ended_attempt(
    program: &Arc<ProgramSpec>,
    attempt_outcome: &AttemptOutcome<'_>,
) -> Result<(), Failure> {
    let Err(failure) = evaluate_attempt(program, attempt_outcome) else { return Ok(()) };
    let AttemptOutcome { exit, stdout, stderr, .. } = attempt_outcome;
    // A program that ran may end with this code too; then `env` wrote nothing.
    let is_refusal = exit.code() == Some(NOT_FOUND_EXIT_CODE)
        && stdout.is_empty()
        && stderr.lines().next().is_some_and(is_message_of_env);
    if failure.code != Code::Exit || !is_refusal {
        return Err(failure);
    }
    let program = Arc::clone(program);
    let find =
        move || ProgramFault::find_definite(&program.command, search_path(&program).as_deref());
    Err(match run_bounded(find).await.flatten() {
        Some(fault @ ProgramFault::InterpreterMissing { .. }) => unexecutable_failure(&fault),
        _ => failure,
    })
}

/// Returns the folders in which the program searches others.
pub(in crate::drivers) fn search_path(program: &ProgramSpec) -> Option<String> {
    let configured = program.env.get("PATH").map(|variable| variable.value.clone());
    configured.or_else(|| env::var("PATH").ok())
}

/// Runs a function that may block on the file system; `None` if it takes too long, or if too many others do.
pub(in crate::drivers) async fn run_bounded<T: Send + 'static>(
    function: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let permit = SEARCHES.try_acquire().ok()?;
    let run = move || {
        let _permit = permit; // Until the function has returned, also if nobody waits for it any more.
        function()
    };
    timeout(SEARCH_TIMEOUT, spawn_blocking(run)).await.ok()?.ok()
}

/// Result of the search for the cause of a failed start.
enum StartCause {
    MissingProgram,
    Found(Failure),
    Unknown,
}

fn is_message_of_env(line: &str) -> bool {
    line.split_once(": ").is_some_and(|(name, _)| name == "env" || name.ends_with("/env"))
}

fn unexecutable_failure(fault: &ProgramFault) -> Failure {
    let message = match fault {
        ProgramFault::NotExecutable => "the program may not be executed".to_owned(),
        fault => format!("the program cannot be executed: {fault}"),
    };
    Failure::new(Code::NotStarted, message)
}

fn find_folder_failure(working_dir: &Path) -> Option<Failure> {
    let message = match fs::metadata(working_dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            "its working folder does not exist"
        }
        Ok(metadata) if !metadata.is_dir() => "its working folder is a file",
        Ok(_) if access(working_dir, AccessFlags::X_OK).is_err() => {
            "the service may not enter its working folder"
        }
        Ok(_) | Err(_) => return None,
    };
    Some(Failure::new(Code::NotStarted, message))
}
