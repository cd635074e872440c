//! Success checks of an attempt: the schema of its answer, its required file, and a command in the same sandbox as the
//! program.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::driver::report::{RedactedTail, Reporter};
use algonius_actors::model::agent::success_criteria::SuccessCriteria;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::ProcessExit;
use algonius_warden::{LaunchRequest, OutputPipe, ProgramLauncher, SpawnedProgram};
use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::sandbox::LaunchSandbox;
use crate::drivers::files::file_access::{AllowedFolders, NamedFileRefusal};
use crate::drivers::lease_commands::LeaseCommandReceiver;
use crate::drivers::start_faults::{self, StartFaultContext};
use crate::platform::json_schema::ParsedSchema;

/// Bytes that are kept of each output of a failed check.
const MAX_CHECK_OUTPUT_BYTES: usize = 4096;
/// Time for which the pipes may stay open after the check has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Success checks of an attempt, determined before the program starts.
#[derive(Default)]
pub(super) struct SuccessChecks {
    /// JSON schema of the answer.
    pub(super) schema: Option<Value>,
    /// Required file, and the folders in which it may be.
    pub(super) artifact: Option<(String, AllowedFolders)>,
    /// Command to run.
    pub(super) command_check: Option<CheckLaunch>,
}

/// Command that runs once.
pub(super) struct CheckLaunch {
    /// Sandbox of the command.
    pub(super) sandbox: LaunchSandbox,
    /// Launch of the command.
    pub(super) launch: LaunchRequest,
    /// Launcher that starts the command.
    pub(super) launcher: Arc<dyn ProgramLauncher>,
    /// Time limit of the command.
    pub(super) time_limit: Duration,
}

impl SuccessChecks {
    /// Returns true if the criteria have any check.
    pub(super) const fn is_required(criteria: &SuccessCriteria) -> bool {
        criteria.answer_schema.is_some()
            || criteria.artifact_path.is_some()
            || criteria.check.is_some()
    }

    /// Runs all checks. The command runs last, and once.
    ///
    /// # Errors
    /// The first check that fails.
    pub(super) async fn run_all(
        self,
        answer: &str,
        (reporter, commands): (&Reporter, &mut LeaseCommandReceiver),
    ) -> Result<(), Failure> {
        let Self { schema, artifact, command_check } = self;
        if let Some(schema) = schema {
            let validation =
                ParsedSchema::parse(&schema).and_then(|schema| schema.validate(answer));
            validation.map_err(|reason| {
                Failure::new(Code::SchemaMismatch, format!("the answer {reason}"))
            })?;
        }
        if let Some((path, allowed_folders)) = artifact {
            check_artifact(&path, &allowed_folders).await?;
        }
        match command_check {
            Some(check) => check.run((reporter, commands)).await,
            None => Ok(()),
        }
    }
}

/// Checks that the file exists and is not empty.
async fn check_artifact(path: &str, allowed_folders: &AllowedFolders) -> Result<(), Failure> {
    // One byte shows that the file is not empty, and so does a file that is longer.
    let reason = match allowed_folders.read(path, 1, |bytes| bytes.is_empty()).await {
        Ok(false) | Err(NamedFileRefusal::TooLarge(_)) => return Ok(()),
        Ok(true) => "it is empty",
        Err(refusal) => refusal.clause(),
    };
    let message = format!("the required file was not delivered: {reason}");
    Err(Failure::new(Code::ArtifactMissing, message))
}

impl CheckLaunch {
    async fn run(
        self,
        (reporter, commands): (&Reporter, &mut LeaseCommandReceiver),
    ) -> Result<(), Failure> {
        let Self { sandbox, launch, launcher, time_limit } = self;
        let launch = sandbox.apply_in_background(launch).await?;
        let (program, fault_context) = (launch.program.clone(), start_fault_context(&launch));
        let spawned = match launcher.launch(launch).await {
            Ok(spawned) => spawned,
            Err(error) => return Err(explain_launch_failure(&error, &program, fault_context).await),
        };
        let SpawnedProgram { stdout, stderr, exit: mut program_exit, tree, .. } = spawned;
        let outputs = [stdout, stderr].map(|pipe| {
            tokio::spawn(read_output_tail(pipe, reporter.new_redacted_tail(MAX_CHECK_OUTPUT_BYTES)))
        });
        let end = async {
            tokio::select! {
                exit = &mut program_exit => Some(exit),
                () = commands.wait_for_stop() => None,
            }
        };
        let end = timeout(time_limit, end).await;
        // A process that the check left would hold its pipes open.
        tree.kill();
        tree.kill_all_processes().await;
        let failure = match end {
            Ok(Some(Ok(ProcessExit::Code(0)))) => return Ok(()),
            Ok(Some(Ok(ProcessExit::Code(code)))) => {
                check_failure(&format!("exited with code {code}"))
            }
            Ok(Some(Ok(ProcessExit::Signal(signal)))) => {
                check_failure(&format!("was killed by signal {signal}"))
            }
            Ok(Some(Err(_lost))) => check_failure("was lost"),
            Ok(None) => return Err(check_failure("was cancelled")),
            Err(_elapsed) => {
                check_failure(&format!("did not finish within {} s", time_limit.as_secs_f64()))
            }
        };
        record_check_output(outputs, reporter).await;
        Err(failure)
    }
}

/// Reads to the end, so that the check never blocks on a full pipe, and keeps the last bytes.
async fn read_output_tail(mut pipe: OutputPipe, mut tail: RedactedTail) -> String {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
        tail.push(buffer.get(..read).unwrap_or_default());
    }
    tail.into_text()
}

/// Records the output of a failed check. The outcome does not depend on it.
async fn record_check_output(outputs: [JoinHandle<String>; 2], reporter: &Reporter) {
    let [stdout, stderr] = outputs.map(|output| async {
        let text = timeout(DRAIN_TIMEOUT, output).await;
        text.map_or_else(|_held_open| String::new(), Result::unwrap_or_default)
    });
    let (stdout, stderr) = tokio::join!(stdout, stderr);
    if stdout.is_empty() && stderr.is_empty() {
        return;
    }
    if let Err(error) = reporter.record_event(EventKind::CheckOutput { stdout, stderr }).await {
        tracing::warn!(%error, "failed to record output of success check");
    }
}

fn check_failure(description: &str) -> Failure {
    Failure::new(Code::CheckFailed, format!("the success check {description}"))
}

fn start_fault_context(launch: &LaunchRequest) -> StartFaultContext {
    StartFaultContext {
        working_dir: launch.working_dir.clone(),
        search_path: None,
        hidden_paths: Vec::new(),
        visible_paths: Vec::new(),
        has_own_user: launch.user.is_some(),
    }
}

/// Converts an error of the launch into a failure with its cause. The lack of a process holder is no fault of the
/// answer, and a retry would repeat the work.
async fn explain_launch_failure(
    error: &io::Error,
    program: &Path,
    fault_context: StartFaultContext,
) -> Failure {
    tracing::error!(%error, "failed to start success check");
    if let (None, io::ErrorKind::NotConnected | io::ErrorKind::ConnectionAborted) =
        (error.raw_os_error(), error.kind())
    {
        let message = "its process holder was lost before its success check";
        return Failure::new(Code::Interrupted, message);
    }
    let program_missing_failure = || Failure::new(Code::NotStarted, "its program does not exist");
    let failure = start_faults::launch_failure(error);
    let cause = start_faults::explain_failed_start(
        failure,
        program,
        fault_context,
        program_missing_failure,
    )
    .await;
    check_failure(&format!("could not be started: {}", cause.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn failure_of(error: &io::Error, program: &str) -> Failure {
        let fault_context = StartFaultContext {
            working_dir: "/".into(),
            search_path: None,
            hidden_paths: Vec::new(),
            visible_paths: Vec::new(),
            has_own_user: false,
        };
        explain_launch_failure(error, Path::new(program), fault_context).await
    }

    #[tokio::test]
    async fn a_lost_process_holder_is_no_fault_of_the_answer() {
        for (error, code) in [
            (io::ErrorKind::NotConnected.into(), Code::Interrupted),
            (io::ErrorKind::ConnectionAborted.into(), Code::Interrupted),
            (io::Error::from_raw_os_error(2), Code::CheckFailed),
            (io::Error::other("broken"), Code::CheckFailed),
        ] {
            assert_eq!(failure_of(&error, "/bin/sh").await.code, code, "{error}");
        }
    }

    #[tokio::test]
    async fn a_check_that_does_not_start_names_its_cause() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("verify.sh").display().to_string();
        std::fs::write(&script, "#!/nonexistent/interpreter\n").unwrap();
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .unwrap();
        let cause = |message: &str| format!("the success check could not be started: {message}");
        for (errno, program, contained) in [
            (2, "/nonexistent/check", "its program does not exist"),
            (2, script.as_str(), "its interpreter `interpreter` does not exist"),
            (11, "/bin/sh", "the machine has no room for another process"),
            (7, "/bin/sh", "arguments and environment are longer than a process takes"),
        ] {
            let failure = failure_of(&io::Error::from_raw_os_error(errno), program).await;
            assert!(failure.message.starts_with(&cause("")), "{failure}");
            assert!(failure.message.contains(contained), "{failure}");
        }
    }
}
