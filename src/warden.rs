//! The spawner: starts programs and holds them, and ends all that they started.
//!
//! The programs are children of a small process of its own, the warden, so that they outlive a
//! supervisor that is killed or replaced. Who drives a program sees pipes, an exit and a [`Tree`],
//! and never how the process is held.

mod attach;
mod census;
mod codec;
pub mod confine;
mod frame;
mod gauge;
pub mod group;
mod keeper;
mod label;
mod link;
pub mod memory;
mod packet;
mod prepare;
mod proc;
pub mod process;
mod program;
pub mod rungs;
mod signal;
mod start;
mod stream;
mod sweep;
mod tree;
pub mod wardens;
pub mod wrap;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use algonius_actors::model::execution::Stamp;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::program::Exit;
use algonius_actors::model::resources::{Controllers, Refusals, Resources};
use algonius_actors::model::usage::Spent;
use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};
use uuid::Uuid;

pub use self::gauge::Gauge;
pub use self::wrap::Wrapper;

/// Variable that names the data directory to which a process belongs.
pub const INSTANCE: &str = "ALGONIUS_INSTANCE_ID";
/// Variable that names the execution to which a process belongs.
pub const EXECUTION: &str = "ALGONIUS_EXECUTION_ID";
/// Variable that names the turn.
pub const TURN: &str = "ALGONIUS_TURN";
/// Variable that names the attempt.
pub const ATTEMPT: &str = "ALGONIUS_ATTEMPT";

/// The variables by which the processes of an attempt are known.
fn marks(instance: Uuid, execution: ExecutionId, stamp: Stamp) -> [(&'static str, String); 4] {
    [
        (INSTANCE, instance.to_string()),
        (EXECUTION, execution.to_string()),
        (TURN, stamp.turn.to_string()),
        (ATTEMPT, stamp.attempt.to_string()),
    ]
}

/// A program to be started.
pub struct Launch {
    /// For which execution it works.
    pub execution: ExecutionId,
    /// For which attempt of it.
    pub stamp: Stamp,
    /// Absolute path.
    pub program: PathBuf,
    /// Its arguments, without its name.
    pub args: Vec<String>,
    /// Its whole environment. The variables that tell its attempt are added.
    pub env: BTreeMap<OsString, OsString>,
    /// Where it starts.
    pub working_dir: PathBuf,
    /// What it reads on standard input.
    pub stdin: Stdin,
    /// Bytes of each output stream that outlive the supervisor.
    pub cap: u64,
    /// Whether it ends when the supervisor does.
    pub dies_alone: bool,
    /// Resources, by the system's numbers, with the limit of each.
    pub limits: Vec<(u64, u64)>,
    /// What confines it, where it is confined by itself.
    pub ruleset: Option<OwnedFd>,
    /// What starts it in a system of its own, where something does.
    pub wrapper: Option<Wrapper>,
    /// What it may take, where it is to have a control group.
    pub resources: Resources,
}

/// What a program reads on standard input.
pub enum Stdin {
    /// This, and then the end.
    Whole(Vec<u8>),
    /// What is written to it while it runs. It ends at the latest with this process.
    Open,
}

/// A pipe to a program. Dropping it is the end of its standard input.
pub type Feed = Pin<Box<dyn AsyncWrite + Send>>;

/// A pipe from a program.
pub type Pipe = Pin<Box<dyn AsyncRead + Send>>;

/// The end of a program. An error of kind `ConnectionAborted` tells that its warden was lost.
pub type Ending = Pin<Box<dyn Future<Output = io::Result<Exit>> + Send>>;

/// A program that lives, or that has ended while nobody was there.
pub struct Spawned {
    /// Its process id.
    pub pid: u32,
    /// Its standard input, where that is open and was not handed over by an earlier life.
    pub stdin: Option<Feed>,
    /// Its standard output, from the first byte.
    pub stdout: Pipe,
    /// Its standard error, from the first byte.
    pub stderr: Pipe,
    /// How it ends. Comes when the program itself has ended, whoever still holds its pipes.
    pub ending: Ending,
    /// What it started.
    pub tree: Box<dyn Tree>,
}

/// A program and all that it started, in whatever group or session. Dropping it kills all that,
/// unless somebody else has claimed it.
#[async_trait]
pub trait Tree: Send + Sync {
    /// Asks each of its processes to end.
    fn terminate(&self);

    /// Kills all of it.
    fn kill(&self);

    /// Whether any of it may live.
    fn has_survivors(&self) -> bool;

    /// What looks at what it takes.
    fn gauge(&self) -> Gauge;

    /// What it took until its end; `None` before, and where nobody could tell.
    fn spent(&self) -> Option<Spent>;

    /// Returns when somebody else has claimed it. From then on dropping this changes nothing.
    async fn taken(&self);
    /// Which of its limits a control group holds.
    fn held(&self) -> Controllers;

    /// What its control group has refused to it so far.
    fn refusals(&self) -> Refusals;

    /// Kills all of it, and returns when nothing is left; answers how many were killed.
    async fn sweep(&self) -> u64;
}

/// A program that was claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claimed {
    /// How long it has run; `None` when it has ended.
    pub age: Option<Duration>,
}

/// Starts programs, and holds those that an earlier life of the service started.
#[async_trait]
pub trait Warden: Send + Sync + 'static {
    /// Starts a program. Dropped meanwhile, it leaves nothing alive.
    ///
    /// # Errors
    /// When the program could not be started, with the system's error number where it has one.
    async fn launch(&self, launch: Launch) -> io::Result<Spawned>;

    /// Claims the program of this attempt, whoever started it, if it is still held, alive or ended;
    /// `None` when it is not. Whoever drove it has it no more. What an earlier life started and nobody
    /// claims in time is ended.
    fn claim(&self, execution: ExecutionId, stamp: Stamp) -> Option<Claimed>;

    /// Takes that program over.
    ///
    /// # Errors
    /// `NotFound` when none is held.
    async fn adopt(&self, execution: ExecutionId, stamp: Stamp) -> io::Result<Spawned>;

    /// Kills everything of an attempt that nobody drives; answers how many were killed.
    async fn sweep(&self, execution: ExecutionId, stamp: Stamp) -> usize;
}
