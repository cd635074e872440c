//! The spawner: starts a program in a group of its own and ends all that it started.
//!
//! This is a port within the edge. Who drives a program sees pipes, an exit and a [`Tree`], and
//! never how the process is held.

pub mod direct;
mod sweep;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;

use algonius_actors::model::execution::Stamp;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::program::Exit;
use async_trait::async_trait;
use tokio::io::AsyncRead;
use uuid::Uuid;

/// Variable that names the data directory to which a process belongs.
pub const INSTANCE: &str = "ALGONIUS_INSTANCE_ID";
/// Variable that names the execution to which a process belongs.
pub const EXECUTION: &str = "ALGONIUS_EXECUTION_ID";
/// Variable that names the turn.
pub const TURN: &str = "ALGONIUS_TURN";
/// Variable that names the attempt.
pub const ATTEMPT: &str = "ALGONIUS_ATTEMPT";

/// Whose processes: everything that carries all of these in its environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// One attempt. Not the whole execution: the next attempt may be alive already.
    Attempt(ExecutionId, Stamp),
    /// Everything that one data directory ever started.
    Instance(Uuid),
}

impl Mark {
    /// The variables by which its processes are known.
    #[must_use]
    pub fn variables(self) -> Vec<(&'static str, String)> {
        match self {
            Self::Attempt(execution, stamp) => vec![
                (EXECUTION, execution.to_string()),
                (TURN, stamp.turn.to_string()),
                (ATTEMPT, stamp.attempt.to_string()),
            ],
            Self::Instance(instance) => vec![(INSTANCE, instance.to_string())],
        }
    }
}

/// A program to be started.
pub struct Launch {
    /// Absolute path.
    pub program: PathBuf,
    /// Its arguments, without its name.
    pub args: Vec<String>,
    /// Its whole environment. The variables of `mark` are added.
    pub env: BTreeMap<OsString, OsString>,
    /// Where it starts.
    pub working_dir: PathBuf,
    /// What it reads on standard input, which is then closed.
    pub stdin: Vec<u8>,
    /// By what its processes are found again.
    pub mark: Mark,
}

/// A pipe from a program.
pub type Pipe = Pin<Box<dyn AsyncRead + Send>>;

/// The end of a program. Dropped before it came, it kills the program's group.
pub type Ending = Pin<Box<dyn Future<Output = io::Result<Exit>> + Send>>;

/// A program that lives. Its standard input is fed meanwhile, and whether it reads it is its own
/// matter.
pub struct Spawned {
    /// Its process id.
    pub pid: u32,
    /// Its standard output.
    pub stdout: Pipe,
    /// Its standard error.
    pub stderr: Pipe,
    /// How it ends. Comes when the program itself has ended, whoever still holds its pipes.
    pub ending: Ending,
    /// What it started.
    pub tree: Box<dyn Tree>,
}

/// A program and all that it started. Dropping it kills the group.
///
/// Poll [`Spawned::ending`] and signal from one task only: then no signal can reach a process
/// that got the number of the one that ended.
#[async_trait]
pub trait Tree: Send + Sync {
    /// Asks the group to end.
    fn terminate(&self);

    /// Kills the group.
    fn kill(&self);

    /// Whether the program has ended and something of its group has not.
    fn has_survivors(&self) -> bool;

    /// Kills everything that carries the mark, in whatever group or session. Returns when a round
    /// found nothing more, or after a bounded number of rounds; answers how many were killed.
    async fn sweep(&self) -> usize;
}

/// Starts programs.
#[async_trait]
pub trait Warden: Send + Sync + 'static {
    /// Starts a program. Dropped meanwhile, it leaves nothing alive.
    ///
    /// # Errors
    /// When the program could not be started, with the system's error number where it has one.
    async fn launch(&self, launch: Launch) -> io::Result<Spawned>;
}

/// Kills what an earlier life of this data directory left running, before anything is started
/// again. Answers how many processes were killed. Spares this process and its ancestors.
pub async fn sweep_instance(instance: Uuid) -> usize {
    sweep::sweep(Mark::Instance(instance)).await
}

/// Kills everything that carries the mark of an attempt. Answers how many processes were killed.
pub(crate) async fn sweep_attempt(execution: ExecutionId, stamp: Stamp) -> usize {
    sweep::sweep(Mark::Attempt(execution, stamp)).await
}
