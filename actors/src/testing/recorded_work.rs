//! Visible state of scripted work, and the guards that count it.

use std::sync::Arc;

use tokio::sync::watch;

use crate::driver::AttemptWork;
use crate::model::agent::workspace::Workspace;
use crate::model::execution::AttemptId;
use crate::model::id::{AgentId, ExecutionId};

/// Visible state of the work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedWork {
    /// Attempts in the order of their start, as `text#attempt@second`.
    pub starts: Vec<String>,
    /// Number of running attempts.
    pub alive_count: usize,
    /// Highest number of attempts that ran at one time.
    pub max_alive_count: usize,
    /// Number of held leases.
    pub lease_count: usize,
    /// All attempts that ever ran, in the order of their start.
    pub lifetimes: Vec<WorkLifetime>,
    /// Answers in the order of their delivery, as `wire:answer`. Work that is resumed asks nothing again that is here.
    pub delivered_answers: Vec<String>,
    /// Number of starts and ends.
    start_and_end_count: u64,
}

/// Attempt that ran. Events at one moment of paused time are nevertheless ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkLifetime {
    /// Id of the agent.
    pub agent: AgentId,
    /// Id of the execution.
    pub execution: ExecutionId,
    /// Id of the attempt.
    pub attempt_id: AttemptId,
    /// True if an earlier process of the service had started it.
    pub is_resumed: bool,
    /// Workspace that was claimed for it.
    pub workspace: Option<Workspace>,
    /// Position of its start among all starts and ends.
    pub start_position: u64,
    /// Position of its end; `None` while it runs.
    pub end_position: Option<u64>,
}

impl WorkLifetime {
    /// Returns true if both ran at the same moment.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let ends_before = |first: &Self, second: &Self| {
            first.end_position.is_some_and(|end| end < second.start_position)
        };
        !ends_before(self, other) && !ends_before(other, self)
    }
}

/// Guard that counts running work.
pub(super) struct LiveWorkGuard(Arc<watch::Sender<RecordedWork>>, usize);

impl LiveWorkGuard {
    pub(super) fn record_start(
        recorded_work: &Arc<watch::Sender<RecordedWork>>,
        AttemptWork { execution, attempt_id, spec, workspace, .. }: &AttemptWork,
        is_resumed: bool,
    ) -> Self {
        let mut index = 0;
        recorded_work.send_modify(|work| {
            work.alive_count += 1;
            work.max_alive_count = work.max_alive_count.max(work.alive_count);
            work.start_and_end_count += 1;
            index = work.lifetimes.len();
            work.lifetimes.push(WorkLifetime {
                agent: spec.id.clone(),
                execution: *execution,
                attempt_id: *attempt_id,
                is_resumed,
                workspace: workspace.clone(),
                start_position: work.start_and_end_count,
                end_position: None,
            });
        });
        Self(Arc::clone(recorded_work), index)
    }
}

impl Drop for LiveWorkGuard {
    fn drop(&mut self) {
        self.0.send_modify(|work| {
            work.alive_count -= 1;
            work.start_and_end_count += 1;
            let end_position = work.start_and_end_count;
            if let Some(lifetime) = work.lifetimes.get_mut(self.1) {
                lifetime.end_position = Some(end_position);
            }
        });
    }
}

/// Guard that counts leases.
pub(super) struct LeaseCountGuard(Arc<watch::Sender<RecordedWork>>);

impl LeaseCountGuard {
    pub(super) fn increment(recorded_work: &Arc<watch::Sender<RecordedWork>>) -> Self {
        recorded_work.send_modify(|work| work.lease_count += 1);
        Self(Arc::clone(recorded_work))
    }
}

impl Drop for LeaseCountGuard {
    fn drop(&mut self) {
        self.0.send_modify(|work| work.lease_count -= 1);
    }
}
