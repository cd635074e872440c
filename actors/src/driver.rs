//! Driver of an agent's work: a process, later a session, a remote agent, a team.

pub mod report;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::driver::report::Reporter;
use crate::model::agent::AgentSpec;
use crate::model::agent::workspace::Workspace;
use crate::model::execution::AttemptId;
use crate::model::execution::event::TextChannel;
use crate::model::execution::request::Request;
use crate::model::execution::usage::UsageReading;
use crate::model::id::ExecutionId;
use crate::model::interaction::{AnswerValue, WireId};
use crate::model::observation::status::PooledProcess;

/// Attempt to start or resume.
#[derive(Debug, Clone)]
pub struct AttemptWork {
    /// Id of the execution.
    pub execution: ExecutionId,
    /// Id of the attempt.
    pub attempt_id: AttemptId,
    /// Definition of the agent, with its deadlines and sizes.
    pub spec: Arc<AgentSpec>,
    /// Raw request.
    pub request: Arc<Request>,
    /// Workspace that was claimed for the attempt; the attempt modifies nothing elsewhere.
    pub workspace: Option<Workspace>,
}

/// Work of an earlier process or actor that was taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkTakenOver {
    /// Run time so far, if the system reports it by a clock that does not jump.
    pub elapsed_run_time: Option<Duration>,
}

/// Driver of one agent's work.
#[async_trait]
pub trait Driver: Send + Sync + 'static {
    /// Returns the folder that the work would modify if it started now; `None` if it modifies none. Called before each
    /// attempt; returns in bounded time.
    async fn workspace(&self, spec: &AgentSpec, request: &Request) -> Option<Workspace>;

    /// Returns true if the messages of one conversation run one after the other.
    fn runs_turns_in_order(&self) -> bool {
        false
    }

    /// Returns the text that becomes the answer of an attempt if the attempt succeeds, if there is one such
    /// text: it can be shown while it grows.
    fn partial_answer_channel(&self) -> Option<TextChannel> {
        None
    }

    /// Returns the pooled programs of conversations. Does not block.
    fn pooled_processes(&self) -> Vec<PooledProcess> {
        Vec::new()
    }

    /// Starts an attempt and returns at once. The driver notifies `reporter` when the work runs and, exactly once, how
    /// it ended; after that no process of the attempt writes any more.
    fn start(&self, work: AttemptWork, reporter: Reporter) -> Lease;

    /// Takes over the work of an attempt that an earlier process or a crashed actor started, if it is still held,
    /// running or ended; the previous holder loses it.
    ///
    /// Returns `None` if the work is not held. Held work that nobody takes over is terminated.
    fn take_over_held_work(
        &self,
        _execution: ExecutionId,
        _attempt_id: AttemptId,
    ) -> Option<WorkTakenOver> {
        None
    }

    /// Resumes work that was [taken over](Self::take_over_held_work), as [`start`](Self::start) does for new work. The
    /// driver replays all events from the start; `reporter` skips those that are already in the ledger.
    fn resume(&self, work: AttemptWork, reporter: Reporter) -> Lease;

    /// Terminates the work of an attempt that nobody will take over. Returns when nothing of it is left.
    async fn terminate(&self, _execution: ExecutionId, _attempt_id: AttemptId) {}
}

/// Handle that holds the work of one attempt. If it is dropped without a [clean-up](AttemptLease::clean_up), the driver
/// holds the work for some seconds, so that another actor may [take it over](Driver::take_over_held_work); a driver
/// that cannot hold work terminates it at once.
pub type Lease = Box<dyn AttemptLease>;

/// Future of a resource usage reading; `None` if the usage cannot be measured.
pub type UsageFuture = Pin<Box<dyn Future<Output = Option<UsageReading>> + Send>>;

/// Operations on held work.
#[async_trait]
pub trait AttemptLease: Send + Sync {
    /// Requests the work to terminate: politely, and by force after the grace period. Returns at once; the driver
    /// reports the end to the reporter. A second call has no effect.
    fn stop(&self);

    /// Sends the answer to a question that the work reported; `None` cancels the request of the agent. An answer to an
    /// unknown or answered question has no effect.
    fn send_answer(&self, _wire_id: WireId, _answer: Option<AnswerValue>) {}

    /// Measures the resource usage of the work and all its descendants.
    fn measure_usage(&self) -> UsageFuture {
        Box::pin(std::future::ready(None))
    }

    /// Removes the leftovers of an ended attempt: processes and files. Returns when nothing is left.
    async fn clean_up(self: Box<Self>);
}
