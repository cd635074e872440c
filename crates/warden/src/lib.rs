//! Process supervision: starts programs, holds them, and ends all their processes.
//!
//! The programs are children of a small separate process, the process holder, so that they outlive a supervisor that is
//! killed or replaced. The driver of a program sees pipes, an exit and a [`ProcessTree`], and never the process holder
//! itself.

pub mod capabilities;
pub mod confinement;
mod holder;
pub mod inherited_state;
pub mod memory;
pub mod output;
mod process;
pub mod process_holders;
mod protocol;
pub mod startup;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::execution::usage::ResourceUsage;
use algonius_actors::model::host::resources::{CgroupLimitEvents, Controllers, ResourceLimits};
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::program::{ProcessExit, UnixUser};
use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};
use uuid::Uuid;

use self::confinement::landlock::Ruleset;

pub use self::confinement::bubblewrap::WrapperCommand;
pub use self::confinement::root_capabilities::RootCapabilities;
pub use self::output::memory_account::{MemoryAccount, OutputMemory, OutputMemoryUsage};
pub use self::output::recording::OutputRecording;
pub use self::output::stdin_journal::{DEFAULT_MAX_JOURNAL_BYTES, StdinJournal, StdinJournalError};
pub use self::process::usage::UsageGauge;

/// Variable that names the data directory to which a process belongs.
pub const INSTANCE_VARIABLE: &str = "ALGONIUS_INSTANCE_ID";
/// Variable that names the execution to which a process belongs.
pub const EXECUTION_VARIABLE: &str = "ALGONIUS_EXECUTION_ID";
/// Variable that contains the turn.
pub const TURN_VARIABLE: &str = "ALGONIUS_TURN";
/// Variable that contains the attempt.
pub const ATTEMPT_VARIABLE: &str = "ALGONIUS_ATTEMPT";

/// Returns the variables that identify the processes of an attempt.
fn identity_variables(
    data_dir_id: Uuid,
    execution: ExecutionId,
    attempt_id: AttemptId,
) -> [(&'static str, String); 4] {
    [
        (INSTANCE_VARIABLE, data_dir_id.to_string()),
        (EXECUTION_VARIABLE, execution.to_string()),
        (TURN_VARIABLE, attempt_id.turn.to_string()),
        (ATTEMPT_VARIABLE, attempt_id.attempt.to_string()),
    ]
}

/// Program to be started.
pub struct LaunchRequest {
    /// Execution of the program.
    pub execution: ExecutionId,
    /// Attempt of the execution.
    pub attempt_id: AttemptId,
    /// Absolute path of the program.
    pub program: PathBuf,
    /// Arguments, without the program's name.
    pub args: Vec<String>,
    /// Complete environment. The variables that identify the attempt are added.
    pub env: BTreeMap<OsString, OsString>,
    /// Working directory at the start.
    pub working_dir: PathBuf,
    /// Standard input.
    pub stdin: StdinSource,
    /// Bytes of each output stream that outlive the supervisor.
    pub max_recorded_bytes: u64,
    /// True if the program ends when the supervisor does.
    pub ends_with_supervisor: bool,
    /// Resource numbers of the system, with the limit of each.
    pub rlimits: Vec<(u64, u64)>,
    /// Landlock ruleset of the program's domain.
    pub ruleset: Option<Ruleset>,
    /// Capabilities that a program of root keeps.
    pub root_capabilities: RootCapabilities,
    /// User of the program; `None` for the service's own.
    pub user: Option<UnixUser>,
    /// Number of its scratch slot, which a later process of the service needs.
    pub scratch_slot: Option<u64>,
    /// Wrapper that starts the program in namespaces, if it has one.
    pub wrapper: Option<WrapperCommand>,
    /// Resource limits, and whether the program gets a control group.
    pub resource_limits: ResourceLimits,
}

/// Standard input of a program.
pub enum StdinSource {
    /// These bytes, and then the end.
    Bytes(Vec<u8>),
    /// Bytes that are written while the program runs. The input ends at the latest with this process.
    Piped,
    /// Messages that are written through a journal while the program runs. The process holder holds the input, which
    /// the next process instance of the service continues.
    Journaled,
}

/// Pipe to a program. Dropping it closes the program's standard input.
pub type StdinPipe = Pin<Box<dyn AsyncWrite + Send>>;

/// Pipe from a program.
pub type OutputPipe = Pin<Box<dyn AsyncRead + Send>>;

/// Future of a program's exit. An error of kind `ConnectionAborted` means that its process holder was lost.
pub type ProgramExit = Pin<Box<dyn Future<Output = io::Result<ProcessExit>> + Send>>;

/// Program that runs, or that has ended while no supervisor was attached.
pub struct SpawnedProgram {
    /// Process id of the program.
    pub pid: u32,
    /// [`LaunchRequest::scratch_slot`], also of a program that an earlier process of the service started.
    pub scratch_slot: Option<u64>,
    /// Standard input, if it is open and the program was not started by an earlier process instance.
    pub stdin: Option<StdinPipe>,
    /// Journaled standard input; after its close only its journal can be read. The program may have been started by an
    /// earlier process instance.
    pub stdin_journal: Option<StdinJournal>,
    /// Standard output, from the first byte.
    pub stdout: OutputPipe,
    /// Standard error, from the first byte.
    pub stderr: OutputPipe,
    /// Exit of the program. Resolves when the program itself has ended, even if other processes hold its pipes.
    pub exit: ProgramExit,
    /// Process tree of the program.
    pub tree: Box<dyn ProcessTree>,
    /// Memory files of standard output and of standard error: the first bytes of each, up to
    /// [`LaunchRequest::max_recorded_bytes`].
    pub recordings: [OutputRecording; 2],
    /// Program's account of the memory for output.
    pub memory_account: MemoryAccount,
}

/// Program with all its descendants, in whatever group or session. Dropping it kills them, unless another driver has
/// taken over the program.
#[async_trait]
pub trait ProcessTree: Send + Sync {
    /// Sends SIGTERM to each of its processes.
    fn terminate(&self);

    /// Kills all its processes.
    fn kill(&self);

    /// Returns true if a process of the tree may be alive.
    fn may_have_live_processes(&self) -> bool;

    /// Returns the gauge of its resource usage.
    fn gauge(&self) -> UsageGauge;

    /// Returns the usage until its end; `None` before the end, and if it is unknown.
    fn final_usage(&self) -> Option<ResourceUsage>;

    /// Returns when another driver has taken over the program. From then on dropping the tree has no effect.
    async fn wait_until_taken_over(&self);

    /// Returns the limits that a control group enforces.
    fn enforced_controllers(&self) -> Controllers;

    /// Returns the limit events of its control group so far.
    fn limit_events(&self) -> CgroupLimitEvents;

    /// Kills all its processes, and returns when none is left, with the number of killed processes.
    async fn kill_all_processes(&self) -> u64;
}

/// Program that was taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramTakenOver {
    /// Running time; `None` after the end.
    pub running_time: Option<Duration>,
}

/// Interface that starts programs, and holds those of an earlier process instance of the service.
#[async_trait]
pub trait ProgramLauncher: Send + Sync + 'static {
    /// Starts a program. A dropped future leaves no process alive.
    ///
    /// # Errors
    /// Fails if the program could not be started, with the system's error number if there is one. Without a number,
    /// `NotConnected` means that there is no process holder, and `ConnectionAborted` that it was lost meanwhile: the
    /// program may have been started.
    async fn launch(&self, launch: LaunchRequest) -> io::Result<SpawnedProgram>;

    /// Begins the takeover of the program of this attempt if it is still held, running or ended; returns `None` if it
    /// is not. This takes the program from its present driver; [`Self::complete_takeover`] returns its streams. A
    /// program of an earlier process instance that is not taken over in time is ended.
    fn begin_takeover(
        &self,
        execution: ExecutionId,
        attempt_id: AttemptId,
    ) -> Option<ProgramTakenOver>;

    /// Returns the streams and the control of a program that was taken over.
    ///
    /// # Errors
    /// `NotFound` if the program is not held.
    async fn complete_takeover(
        &self,
        execution: ExecutionId,
        attempt_id: AttemptId,
    ) -> io::Result<SpawnedProgram>;

    /// Kills all processes of an attempt without a driver, and returns when none is left.
    async fn kill_all_processes(&self, execution: ExecutionId, attempt_id: AttemptId);
}
