//! What does an agent's work: a process, later a session, a remote agent, a team.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::model::agent::AgentSpec;
use crate::model::execution::Stamp;
use crate::model::id::ExecutionId;
use crate::model::request::Request;
use crate::model::status::KeptStatus;
use crate::model::usage::Usage;
use crate::model::workspace::Workspace;
use crate::report::Reporter;

/// One attempt to be made.
#[derive(Debug, Clone)]
pub struct Work {
    /// The execution.
    pub execution: ExecutionId,
    /// Which attempt of it.
    pub stamp: Stamp,
    /// The agent, with its deadlines and sizes.
    pub spec: Arc<AgentSpec>,
    /// What was asked, raw.
    pub request: Arc<Request>,
    /// What was claimed for it; it changes nothing elsewhere.
    pub workspace: Option<Workspace>,
}

/// Work that was claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Claimed {
    /// How long it has run, where the system tells that by a clock that does not jump.
    pub ran: Option<Duration>,
}

/// Does the work of one agent.
#[async_trait]
pub trait Driver: Send + Sync + 'static {
    /// The folder that the work would change if it began now; `None` when it changes none. Asked
    /// before each attempt, and answers in bounded time.
    async fn workspace(&self, spec: &AgentSpec, request: &Request) -> Option<Workspace>;

    /// Whether the messages of one conversation go one after the other.
    fn takes_turns(&self) -> bool {
        false
    }

    /// The programs that are kept between the messages of conversations. Answers at once.
    fn kept(&self) -> Vec<KeptStatus> {
        Vec::new()
    }

    /// Begins an attempt and returns at once. The driver tells `report` when the work lives and,
    /// exactly once, how it ended; after that nothing of the attempt writes any more.
    fn start(&self, work: Work, report: Reporter) -> Lease;

    /// Claims the work of an attempt that an earlier life or a crashed actor began, if it is still
    /// held, alive or ended; whoever had it before has it no more.
    ///
    /// `None` when it is not. Held work that nobody claims is ended.
    fn claim(&self, _execution: ExecutionId, _stamp: Stamp) -> Option<Claimed> {
        None
    }

    /// Takes up work that was [claimed](Self::claim), as [`start`](Self::start) does otherwise. What it
    /// tells it tells from its beginning; `report` knows what was written of it already.
    fn resume(&self, work: Work, report: Reporter) -> Lease;

    /// Ends the work of an attempt that nobody will claim. Returns when nothing is left of it.
    async fn end(&self, _execution: ExecutionId, _stamp: Stamp) {}
}

/// Holds the work of one attempt. Dropped without a [clean-up](Hold::clean) it holds the work for
/// some seconds still, for the one who may [claim](Driver::claim) it; or ends it at once, where the
/// driver cannot hold anything.
pub type Lease = Box<dyn Hold>;

/// What the work takes of the machine, once that was looked at; `None` where nobody can tell.
pub type Reading = Pin<Box<dyn Future<Output = Option<Usage>> + Send>>;

/// What can be done with held work.
#[async_trait]
pub trait Hold: Send + Sync {
    /// Asks the work to end: politely, then after the grace by force. Returns at once; the end is
    /// told to the reporter. Asking twice changes nothing.
    fn stop(&self);

    /// Looks what the work takes, with all that it started.
    fn usage(&self) -> Reading {
        Box::pin(std::future::ready(None))
    }

    /// Removes what an ended attempt left: processes, files. Returns when nothing is left.
    async fn clean(self: Box<Self>);
}
