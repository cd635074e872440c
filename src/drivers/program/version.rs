//! Determines the version of a program: in the sandbox of its agent, without a secret, and within a time limit.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::driver::AttemptWork;
use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::agent::success_criteria::{SuccessCriteria, UsageRules};
use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::execution::request::{
    Input, Overrides, Request, RequestOrigin, Trigger,
};
use algonius_actors::model::id::{ContextId, ExecutionId, MessageId, PrincipalId};
use algonius_actors::model::program::runtime_settings::{AgentHome, VersionSpec};
use algonius_actors::model::program::{
    InputMethod, OutputMethod, ProgramSpec, ServiceLossAction, VariableSecrecy,
};
use algonius_warden::{SpawnedProgram, Warden};
use regex::Regex;
use tokio::io::AsyncReadExt;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use uuid::Uuid;

use super::attempt::{AttemptStart, StartedProgram};
use super::context::SharedDriverContext;
use super::session_resume::AttemptSession;
use super::workspace::resolve_workspace;
use crate::drivers::files::scratch_dir::ScratchDir;
use crate::drivers::lease_commands::LeaseCommandSender;
use crate::platform::temporary_folder::temporary_folder;

/// Bytes of an answer that are read.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;
/// Longest version that is shown, in characters.
const MAX_VERSION_CHARS: usize = 64;

/// Reason why a version is unknown. It contains no text of the program.
#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    /// The program could not be run.
    #[error("the version of the program could not be queried")]
    Launch,
    /// The program took too long.
    #[error("the program did not report its version within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The program printed no version.
    #[error("the program printed no version")]
    Unrecognized,
}

/// Program whose version is requested, and the process holder that runs it.
pub struct VersionSubject {
    /// Agent of the program, with the isolation that was decided.
    pub spec: Arc<AgentSpec>,
    /// Program to run.
    pub program: Arc<ProgramSpec>,
    /// Settings that all programs share.
    pub shared_context: Arc<SharedDriverContext>,
    /// Warden that starts the program.
    pub warden: Arc<dyn Warden>,
}

/// Returns the version that a program reports. The program runs with its own home if that exists; otherwise
/// with a new home, which is removed afterwards.
///
/// # Errors
/// Fails if the program cannot be run, takes longer than `time_limit`, or reports no version.
pub async fn query(
    subject: VersionSubject,
    version: &VersionSpec,
    time_limit: Duration,
) -> Result<String, VersionError> {
    let home =
        create_temporary_home(&subject.program).await.map_err(|error| launch_failure(&error))?;
    let text = timeout(time_limit, read_program_output(subject, version, home.as_ref())).await;
    if let Some(home) = home {
        home.remove().await;
    }
    let text = text.map_err(|_elapsed| VersionError::Timeout(time_limit))??;
    find_version(&version.regex, &text).ok_or(VersionError::Unrecognized)
}

/// Returns the output of the program up to its end. If the future is dropped earlier, no process remains.
async fn read_program_output(
    subject: VersionSubject,
    version: &VersionSpec,
    home: Option<&ScratchDir>,
) -> Result<String, VersionError> {
    let VersionSubject { spec, program, shared_context, warden } = subject;
    let program = Arc::new(version_program(&program, version, home));
    let mut work = probe_work(spec);
    work.workspace = resolve_workspace(&program, &work.spec, &work.request).await;
    let attempt = AttemptStart {
        program,
        context: shared_context,
        warden,
        work,
        session: AttemptSession::default(),
    };
    let (_command_sender, commands) = LeaseCommandSender::channel();
    let StartedProgram { spawned, folder, .. } =
        attempt.launch(&commands).await.map_err(|failure| {
            tracing::debug!(%failure, "failed to query version of program");
            VersionError::Launch
        })?;
    let SpawnedProgram { stdout, stderr, exit, tree, .. } = spawned;
    let mut bytes = Vec::new();
    // Both pipes are read, so that the program never blocks at a full one.
    let (stdout, stderr) = (stdout.take(MAX_OUTPUT_BYTES), stderr.take(MAX_OUTPUT_BYTES));
    let mut stdout = std::pin::pin!(stdout);
    let mut discarded = Vec::new();
    let mut stderr = std::pin::pin!(stderr);
    let read_result =
        tokio::join!(stdout.read_to_end(&mut bytes), stderr.read_to_end(&mut discarded)).0;
    read_result.map_err(|error| launch_failure(&error))?;
    exit.await.map_err(|error| launch_failure(&error))?;
    tree.kill_all_processes().await; // No process that the program started may use the folder any more.
    if let Some(folder) = folder {
        folder.remove().await;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the program for the version request: without its secrets, its sessions and its conditions of success.
fn version_program(
    program: &ProgramSpec,
    version: &VersionSpec,
    home: Option<&ScratchDir>,
) -> ProgramSpec {
    let mut probe = ProgramSpec {
        args: version.args.clone(),
        params: BTreeMap::new(),
        input: InputMethod::Stdin,
        output: OutputMethod::Stdout,
        success: SuccessCriteria::default(),
        on_loss: ServiceLossAction::Kill,
        session: None,
        stdio_protocol: None,
        usage: UsageRules::default(),
        pool: None,
        ..program.clone()
    };
    probe.env.retain(|_, variable| variable.secrecy == VariableSecrecy::Plain);
    if let Some(home) = home {
        probe.program_runtime.home = home.path().to_owned();
        let own = AgentHome { path: home.path().to_owned(), files: BTreeMap::new() };
        probe.program_runtime.agent_home = Some(Box::new(own));
    }
    probe
}

fn probe_work(spec: Arc<AgentSpec>) -> AttemptWork {
    let request = Request {
        agent: spec.id.clone(),
        origin: RequestOrigin::direct(PrincipalId(Uuid::nil()), Trigger::Probe),
        message: MessageId(String::new()),
        idempotency_key: None,
        context: ContextId::fresh(),
        starts_context: true,
        continued_execution: None,
        inherited_overrides: Overrides::default(),
        input: Input::default(),
    };
    let (execution, attempt_id) = (ExecutionId::fresh(), AttemptId::FIRST);
    AttemptWork { execution, attempt_id, spec, request: Arc::new(request), workspace: None }
}

/// Creates a home for a program whose own home does not exist yet.
async fn create_temporary_home(program: &ProgramSpec) -> io::Result<Option<ScratchDir>> {
    let is_missing =
        program.program_runtime.agent_home.as_ref().is_some_and(|own| !own.path.is_dir());
    let (name, user) = (format!("algonius-look-{}", Uuid::new_v4()), program.user);
    let create = move || {
        let folder = ScratchDir::create(temporary_folder().join(name), user)?;
        folder.transfer_ownership().map(|()| folder)
    };
    if is_missing { spawn_blocking(create).await?.map(Some) } else { Ok(None) }
}

fn launch_failure(error: &io::Error) -> VersionError {
    tracing::debug!(%error, "failed to query version of program");
    VersionError::Launch
}

fn find_version(regex: &Regex, text: &str) -> Option<String> {
    let captures = regex.captures(text)?;
    let version = captures.get(1).or_else(|| captures.get(0))?.as_str();
    // The text goes to terminals, where control characters have an effect.
    let is_plain =
        version.chars().count() <= MAX_VERSION_CHARS && !version.contains(char::is_control);
    is_plain.then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Regex, find_version};

    #[test]
    fn a_version_is_the_first_group_or_the_whole_match() {
        let ungrouped = Regex::new(r"\d+(?:\.\d+)+").unwrap();
        for (text, expected) in [
            ("2.1.330 (Claude Code)\n", Some("2.1.330")),
            ("codex-cli 0.169.0\n", Some("0.169.0")),
            ("llm, version 0.36", Some("0.36")),
            ("unknown option", None),
            ("", None),
        ] {
            assert_eq!(find_version(&ungrouped, text).as_deref(), expected, "{text}");
        }
        let grouped = Regex::new(r"release (\w+)").unwrap();
        assert_eq!(find_version(&grouped, "release 7b of 2.0").as_deref(), Some("7b"));
    }
}
