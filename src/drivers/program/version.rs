//! Determines the version of a program: in the sandbox of its agent, without a secret, and within a time limit.

mod printed_version;

use std::collections::BTreeMap;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::driver::AttemptWork;
use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::agent::success_criteria::{SuccessCriteria, UsagePattern};
use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::execution::request::{
    Input, Overrides, Request, RequestOrigin, Trigger,
};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{ContextId, ExecutionId, MessageId, PrincipalId};
use algonius_actors::model::program::runtime_settings::{AgentHome, VersionCheckSpec};
use algonius_actors::model::program::{
    InputMethod, OutputMethod, ProgramSpec, ServiceLossAction, VariableSecrecy,
};
use algonius_warden::{OutputPipe, ProgramLauncher, SpawnedProgram};
use tokio::io::AsyncReadExt;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use uuid::Uuid;

use printed_version::VersionOutput;

use super::attempt::{PendingAttempt, StartedProgram};
use super::context::SharedDriverContext;
use super::session_resume::AttemptSession;
use super::workspace::resolve_workspace;
use crate::drivers::files::scratch_dir::ScratchDir;
use crate::drivers::lease_commands::LeaseCommandSender;
use crate::platform::temporary_folder::temporary_folder;

pub use printed_version::MissingVersion;

/// Bytes of an answer that are read.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;
/// Time for which the output is read after the end of the program.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Reason why a version is unknown. It contains no text of the program.
#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    /// The program could not be started.
    #[error("the version command did not start: {0}")]
    Launch(Failure),
    /// The service could not prepare the request, or lost the program.
    #[error("the version of the program could not be requested: {0}")]
    Request(#[from] io::Error),
    /// The program took too long.
    #[error("the program did not report its version within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The output of the program has no version.
    #[error(transparent)]
    Missing(#[from] MissingVersion),
}

/// Program whose version is requested, and the launcher that starts it.
pub struct VersionSubject {
    /// Agent of the program, with the isolation that was decided.
    pub spec: Arc<AgentSpec>,
    /// Program to run.
    pub program: Arc<ProgramSpec>,
    /// Settings that all programs share.
    pub shared_context: Arc<SharedDriverContext>,
    /// Launcher that starts the program.
    pub launcher: Arc<dyn ProgramLauncher>,
}

/// Returns the version that a program reports. The program runs with its own home if that exists; otherwise
/// with a new home, which is removed afterwards.
///
/// # Errors
/// Fails if the program cannot be run, takes longer than `time_limit`, or reports no version.
pub async fn query_version(
    subject: VersionSubject,
    version_spec: &VersionCheckSpec,
    time_limit: Duration,
) -> Result<String, VersionError> {
    let home = create_temporary_home(&subject.program).await?;
    let output =
        timeout(time_limit, run_version_command(subject, version_spec, home.as_ref())).await;
    if let Some(home) = home {
        home.remove().await;
    }
    let output = output.map_err(|_elapsed| VersionError::Timeout(time_limit))??;
    Ok(output.find_version(&version_spec.regex)?)
}

/// Returns the output of the program up to its end. If the future is dropped earlier, no process remains.
async fn run_version_command(
    subject: VersionSubject,
    version_spec: &VersionCheckSpec,
    home: Option<&ScratchDir>,
) -> Result<VersionOutput, VersionError> {
    let VersionSubject { spec, program, shared_context, launcher } = subject;
    let program = Arc::new(version_program(&program, version_spec, home));
    let mut work = probe_work(spec);
    work.workspace = resolve_workspace(&program, &work.spec, &work.request).await;
    let attempt = PendingAttempt {
        program,
        context: shared_context,
        launcher,
        work,
        session: AttemptSession::default(),
    };
    let (_command_sender, commands) = LeaseCommandSender::channel();
    let StartedProgram { spawned, folder, .. } =
        attempt.launch(&commands).await.map_err(VersionError::Launch)?;
    let SpawnedProgram { stdout, stderr, mut exit, tree, .. } = spawned;
    let (mut stdout_start, mut stderr_start) = (Vec::new(), Vec::new());
    // Both pipes are read, so that the program never blocks at a full one.
    let reads = async {
        tokio::join!(
            read_output_prefix(stdout, &mut stdout_start),
            read_output_prefix(stderr, &mut stderr_start)
        )
    };
    let exit = {
        let mut reads = pin!(reads);
        let (exit, is_read) = tokio::select! {
            exit = &mut exit => (exit?, false),
            (stdout, stderr) = &mut reads => {
                stdout.and(stderr)?;
                (exit.await?, true)
            }
        };
        // A program that the version command started, such as an updater, may keep the pipes open.
        if !is_read && let Ok((stdout, stderr)) = timeout(DRAIN_TIMEOUT, reads).await {
            stdout.and(stderr)?;
        }
        exit
    };
    tree.kill_all_processes().await; // No process that the program started may use the folder any more.
    if let Some(folder) = folder {
        folder.remove().await;
    }
    let [stdout, stderr] =
        [stdout_start, stderr_start].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(VersionOutput { stdout, stderr, exit })
}

/// Reads a stream to its end, and keeps its start.
async fn read_output_prefix(mut pipe: OutputPipe, start: &mut Vec<u8>) -> io::Result<()> {
    (&mut pipe).take(MAX_OUTPUT_BYTES).read_to_end(start).await?;
    // A program that prints more, for example its help, waits at a full pipe otherwise.
    tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await.map(|_| ())
}

/// Returns the program for the version request: without its secrets, its sessions and its conditions of success.
fn version_program(
    program: &ProgramSpec,
    version_spec: &VersionCheckSpec,
    home: Option<&ScratchDir>,
) -> ProgramSpec {
    let mut probe = ProgramSpec {
        args: version_spec.args.clone(),
        params: BTreeMap::new(),
        input_method: InputMethod::Stdin,
        output_method: OutputMethod::Stdout,
        success_criteria: SuccessCriteria::default(),
        on_service_loss: ServiceLossAction::Kill,
        session_resume: None,
        stdio_protocol: None,
        usage_pattern: UsagePattern::default(),
        pool: None,
        ..program.clone()
    };
    probe.env.retain(|_, variable| variable.secrecy == VariableSecrecy::Plain);
    if let Some(home) = home {
        probe.runtime_settings.home = home.path().to_owned();
        let agent_home = AgentHome { path: home.path().to_owned(), initial_files: BTreeMap::new() };
        probe.runtime_settings.agent_home = Some(Box::new(agent_home));
    }
    probe
}

fn probe_work(spec: Arc<AgentSpec>) -> AttemptWork {
    let request = Request {
        agent: spec.id.clone(),
        origin: RequestOrigin::for_direct_request(PrincipalId(Uuid::nil()), Trigger::Probe),
        message_id: MessageId(String::new()),
        idempotency_key: None,
        context: ContextId::generate(),
        starts_context: true,
        continued_execution: None,
        inherited_overrides: Overrides::default(),
        input: Input::default(),
    };
    let (execution, attempt_id) = (ExecutionId::generate(), AttemptId::FIRST);
    AttemptWork { execution, attempt_id, spec, request: Arc::new(request), workspace: None }
}

/// Creates a home for a program whose own home does not exist yet.
async fn create_temporary_home(program: &ProgramSpec) -> io::Result<Option<ScratchDir>> {
    let is_missing =
        program.runtime_settings.agent_home.as_ref().is_some_and(|own| !own.path.is_dir());
    let (name, user) = (format!("algonius-look-{}", Uuid::new_v4()), program.user.ids);
    let create = move || {
        let folder = ScratchDir::create(temporary_folder().join(name), user)?;
        folder.transfer_ownership().map(|()| folder)
    };
    if is_missing { spawn_blocking(create).await?.map(Some) } else { Ok(None) }
}
