//! Driver of teams: each attempt is a run, which sends its hops to the members through the handle of the requests.
//!
//! A run holds no process. Its facts are events of its execution, so a run can always be claimed and resumed.

mod hop_sending;
mod hop_wait;
mod hop_warnings;
mod run;
mod run_failure;
mod run_output;

use std::time::Duration;

use async_trait::async_trait;

use self::run::TeamAttempt;
use crate::driver::report::Reporter;
use crate::driver::{AttemptLease, AttemptWork, Driver, Lease, WorkTakenOver};
use crate::gateway::request_handle_cell::RequestHandleCell;
use crate::gateway::requests::RunRequestHandle;
use crate::model::agent::AgentSpec;
use crate::model::agent::workspace::Workspace;
use crate::model::execution::AttemptId;
use crate::model::execution::request::Request;
use crate::model::id::ExecutionId;
use crate::runs::attempt::{RunHandle, RunStart};

/// Reason in the history of the hops of a run that ends.
const RUN_END_REASON: &str = "the run of its team ends";

/// Driver of a team. It needs a tokio runtime.
pub struct TeamDriver {
    request_handle_cell: RequestHandleCell,
}

impl TeamDriver {
    /// Creates a driver that sends its requests through the handle in the cell.
    #[must_use]
    pub const fn new(request_handle_cell: RequestHandleCell) -> Self {
        Self { request_handle_cell }
    }

    fn spawn_run(&self, work: AttemptWork, reporter: Reporter, start: RunStart) -> Lease {
        let (execution, cell) = (work.execution, self.request_handle_cell.clone());
        let run_handle = RunHandle::spawn(async move |stop| {
            let request_handle = RunRequestHandle::new(cell.wait_for_handle().await);
            TeamAttempt::new(request_handle, work, start).run(reporter, stop).await;
        });
        Box::new(TeamLease {
            execution,
            request_handle_cell: self.request_handle_cell.clone(),
            run_handle,
        })
    }
}

#[async_trait]
impl Driver for TeamDriver {
    /// Returns no workspace: the members have theirs.
    async fn workspace(&self, _: &AgentSpec, _: &Request) -> Option<Workspace> {
        None
    }

    fn start(&self, work: AttemptWork, reporter: Reporter) -> Lease {
        self.spawn_run(work, reporter, RunStart::New)
    }

    fn take_over_held_work(&self, _: ExecutionId, _: AttemptId) -> Option<WorkTakenOver> {
        // A run makes no progress without the service, so its time starts anew.
        Some(WorkTakenOver { elapsed_run_time: Some(Duration::ZERO) })
    }

    fn resume(&self, work: AttemptWork, reporter: Reporter) -> Lease {
        self.spawn_run(work, reporter, RunStart::Resumed)
    }

    async fn terminate(&self, execution: ExecutionId, _: AttemptId) {
        let request_handle =
            RunRequestHandle::new(self.request_handle_cell.wait_for_handle().await);
        request_handle.cancel_hops(execution, RUN_END_REASON).await;
    }
}

/// Lease of a run. If it is dropped without a clean-up, the run stops at once, and its hops continue: another actor
/// resumes the run.
struct TeamLease {
    execution: ExecutionId,
    request_handle_cell: RequestHandleCell,
    run_handle: RunHandle,
}

#[async_trait]
impl AttemptLease for TeamLease {
    fn stop(&self) {
        self.run_handle.stop();
    }

    async fn clean_up(mut self: Box<Self>) {
        let result = self.run_handle.join().await;
        if let Err(error) = &result {
            tracing::error!(execution = %self.execution, %error, "attempt at a run of a team panicked");
        }
        // A run ends its hops before its own end. One that was suspending itself when it had to stop has left them.
        if result.is_err() || self.run_handle.is_stop_requested() {
            let request_handle =
                RunRequestHandle::new(self.request_handle_cell.wait_for_handle().await);
            request_handle.cancel_hops(self.execution, RUN_END_REASON).await;
        }
    }
}
