//! Causes for which a program could not be started. The kernel reports several causes with one error, so each is looked
//! up after the failure.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs, io};

use algonius_actors::decide::classify::success_evaluation::{
    AttemptOutcome, evaluate_attempt, spawn_failure,
};
use algonius_actors::decide::host::refusal::host_fault_failure;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::host::host_fault::HostFault;
use algonius_actors::model::program::ProgramSpec;
use algonius_warden::confinement::bubblewrap::is_transient_error;
use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::platform::executable_file::{PathVisibility, ProgramFault};

/// Exit code by which `env` reports that it does not find a program.
const NOT_FOUND_EXIT_CODE: i32 = 127;

/// Time limit for the search for a cause. An agent may have put its program, or an interpreter, on a file system of its
/// own that never answers.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(1);

/// Greatest number of concurrent searches. A search that never ends occupies a thread.
static SEARCH_PERMITS: Semaphore = Semaphore::const_new(4);

/// Converts an error of `ProgramLauncher::launch` into a failure.
pub(in crate::drivers) fn launch_failure(error: &io::Error) -> Failure {
    match (error.raw_os_error(), error.kind()) {
        (Some(errno), _) => Some(spawn_failure(errno)),
        (None, io::ErrorKind::ConnectionAborted) => {
            Some(Failure::new(Code::Interrupted, "its process holder was lost"))
        }
        (None, io::ErrorKind::NotConnected) => host_fault_failure(&[HostFault::ProcessHolder]),
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

/// Beginning of the message of a wrapper that could not execute the program.
const WRAPPER_EXEC_MESSAGE: &str = "bwrap: execvp ";

/// Failure of a program that its own user may not execute.
const USER_NOT_PERMITTED_MESSAGE: &str = "the user of the program (`user`) may not execute it or its interpreter, or may not enter its \
     working folder or a folder of theirs";

/// Facts about a program that can explain why it does not start.
pub(in crate::drivers) struct StartFaultContext {
    pub(in crate::drivers) working_dir: PathBuf,
    /// Folders in which `env` searches the interpreter of a script.
    pub(in crate::drivers) search_path: Option<String>,
    /// Paths that the sandbox hides from the program.
    pub(in crate::drivers) hidden_paths: Vec<PathBuf>,
    /// Paths in hidden ones that stay visible.
    pub(in crate::drivers) visible_paths: Vec<PathBuf>,
    /// True if the program has a user of its own.
    pub(in crate::drivers) has_own_user: bool,
}

impl StartFaultContext {
    /// Returns the facts about the program of an agent, which does not see the `hidden` paths.
    pub(in crate::drivers) fn for_agent(
        program: &ProgramSpec,
        working_dir: PathBuf,
        hidden: Vec<PathBuf>,
    ) -> Self {
        let (search_path, has_own_user) = (search_path(program), program.user.ids.is_some());
        let home = program.runtime_settings.agent_home.iter().map(|home| home.path.clone());
        let writable = program.sandbox.writable.iter().flatten().cloned();
        let visible = home.chain(writable).chain([working_dir.clone()]).collect();
        Self {
            working_dir,
            search_path,
            hidden_paths: hidden,
            visible_paths: visible,
            has_own_user,
        }
    }

    /// Returns the failure of a program of which the sandbox hides a file.
    fn find_hidden_file_failure(&self, program: &Path) -> Option<Failure> {
        let path_visibility = PathVisibility {
            hidden: self.hidden_paths.clone(),
            visible: self.visible_paths.clone(),
        };
        let file =
            path_visibility.find_hidden_executed_file(program, self.search_path.as_deref())?;
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
        // The name may come from a file, so control characters are escaped.
        let name = name.escape_debug();
        let object = if file == program { "it" } else { "its interpreter" };
        Some(Failure::new(
            Code::NotStarted,
            format!(
                "the program cannot be executed: its sandbox hides {object}, `{name}`, because of `sandbox.hidden`, \
                 or as a file of the service"
            ),
        ))
    }

    /// Returns the cause for which a program that exists does not start.
    fn find_cause(&self, program: &Path, failure: &Failure) -> Option<Failure> {
        let is_refused = *failure == spawn_failure(Errno::EACCES as i32);
        let is_unexecuted = is_refused || *failure == spawn_failure(Errno::ENOENT as i32);
        let find_fault = || {
            let fault =
                ProgramFault::find_after_exec_failure(program, self.search_path.as_deref())?;
            Some(unexecutable_failure(&fault))
        };
        let find_hidden_file =
            || if is_unexecuted { self.find_hidden_file_failure(program) } else { None };
        let user_failure = || {
            (is_refused && self.has_own_user)
                .then(|| Failure::new(Code::NotStarted, USER_NOT_PERMITTED_MESSAGE))
        };
        find_working_dir_failure(&self.working_dir)
            .or_else(find_fault)
            .or_else(find_hidden_file)
            .or_else(user_failure)
    }
}

/// Replaces the failure of a wrapper by its cause, if a lack of resources or a file of the program is the cause.
/// `stderr` is its standard error.
pub(in crate::drivers) async fn explain_failed_wrapper(
    failure: Failure,
    (program, working_dir): (&ProgramSpec, PathBuf),
    stderr: &str,
) -> Failure {
    let message = stderr.lines().next().unwrap_or_default();
    // A program with a sandbox of its own may have run, and its own wrapper may have failed.
    if is_transient_error(message) && !program.sandbox.has_inner_sandbox {
        return Failure::new(Code::NoResources, "the machine has no room for its sandbox");
    }
    let is_unexecuted = message.starts_with(WRAPPER_EXEC_MESSAGE);
    let is_refused =
        is_unexecuted && program.user.ids.is_some() && message.ends_with("Permission denied");
    let hidden = program.sandbox.hidden.clone();
    let fault_context = StartFaultContext::for_agent(program, working_dir, hidden);
    let cause = find_wrapper_failure_cause(program.command.clone(), fault_context, message).await;
    let user_failure =
        || is_refused.then(|| Failure::new(Code::NotStarted, USER_NOT_PERMITTED_MESSAGE));
    cause.or_else(user_failure).unwrap_or(failure)
}

/// Returns the cause for which a wrapper with this `message` did not execute the program, if a file of the program or
/// the sandbox is the cause.
pub(in crate::drivers) async fn find_wrapper_failure_cause(
    program: PathBuf,
    fault_context: StartFaultContext,
    message: &str,
) -> Option<Failure> {
    let is_unexecuted = message.starts_with(WRAPPER_EXEC_MESSAGE);
    let find = move || {
        // The wrapper executes files of other formats by a shell.
        let fault = ProgramFault::find_after_exec_failure(&program, None)
            .filter(|fault| !fault.is_format_fault());
        let failure = fault.map(|fault| unexecutable_failure(&fault));
        failure
            .or_else(|| fault_context.find_hidden_file_failure(&program).filter(|_| is_unexecuted))
    };
    run_blocking_with_limits(find).await.flatten()
}

/// Replaces the failure of a start by its cause, if the working folder, the file of the program or its sandbox is the
/// cause. `program_missing_failure` is the failure of a program that does not exist.
pub(in crate::drivers) async fn explain_failed_start(
    failure: Failure,
    program: &Path,
    fault_context: StartFaultContext,
    program_missing_failure: impl FnOnce() -> Failure,
) -> Failure {
    if failure.code != Code::NotStarted {
        return failure;
    }
    let (program, original) = (program.to_owned(), failure.clone());
    let search = move || match program.try_exists() {
        Ok(false) => StartCause::MissingProgram,
        _ => fault_context
            .find_cause(&program, &original)
            .map_or(StartCause::Unknown, StartCause::Found),
    };
    match run_blocking_with_limits(search).await {
        Some(StartCause::MissingProgram) => program_missing_failure(),
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
    let is_not_found_report = exit.code() == Some(NOT_FOUND_EXIT_CODE)
        && stdout.is_empty()
        && stderr.lines().next().is_some_and(is_message_of_env);
    if failure.code != Code::Exit || !is_not_found_report {
        return Err(failure);
    }
    let program = Arc::clone(program);
    let find = move || {
        let hidden = program.sandbox.hidden.clone();
        let fault_context =
            StartFaultContext::for_agent(&program, program.working_dir.clone(), hidden);
        match ProgramFault::find_after_exec_failure(
            &program.command,
            fault_context.search_path.as_deref(),
        ) {
            Some(fault @ ProgramFault::InterpreterMissing { .. }) => {
                Some(unexecutable_failure(&fault))
            }
            _ => fault_context.find_hidden_file_failure(&program.command),
        }
    };
    Err(run_blocking_with_limits(find).await.flatten().unwrap_or(failure))
}

/// Returns the folders in which the program searches others.
fn search_path(program: &ProgramSpec) -> Option<String> {
    let configured = program.env.get("PATH").map(|variable| variable.value.clone());
    configured.or_else(|| env::var("PATH").ok())
}

/// Runs a function that may block on the file system; `None` if it takes too long, or if too many others do.
pub(in crate::drivers) async fn run_blocking_with_limits<T: Send + 'static>(
    function: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let permit = SEARCH_PERMITS.try_acquire().ok()?;
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

fn find_working_dir_failure(working_dir: &Path) -> Option<Failure> {
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
