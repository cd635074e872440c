//! Claim of the resources of an attempt: a slot of its agent, a workspace and memory.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::ExecutionMsg;
use super::tasks::ExecutionBackgroundTasks;
use crate::decide::admission::workspace_waiters::WorkspaceWaiters;
use crate::decide::execution::ExecutionEvent;
use crate::model::agent::queue::{QueueReason, Queued};
use crate::model::agent::workspace::Workspace;
use crate::model::execution::{AttemptId, Fence};
use crate::model::id::ExecutionId;
use crate::services::AttemptResources;
use crate::services::memory_budget::{MemoryBudget, MemoryReservation};
use crate::services::workspace_queue::{QueueTicket, WorkspaceQueue};

/// Resources that the ledger granted to an attempt.
pub struct ClaimGranted {
    /// Id of the attempt.
    pub attempt_id: AttemptId,
    /// Generation of the claim.
    pub fence: Fence,
    /// Folder that only this attempt may modify.
    pub workspace: Option<Workspace>,
}

/// Claim that failed because a resource of the attempt is in use.
pub struct ClaimBlocked {
    /// Id of the attempt.
    pub attempt_id: AttemptId,
    /// Resource that is in use.
    pub reason: QueueReason,
    /// Workspace that the attempt requested.
    pub workspace: Option<Workspace>,
}

/// Resources that an execution holds or waits for.
pub(super) struct ResourceClaim {
    id: ExecutionId,
    workspace_queue: WorkspaceQueue,
    memory_budget: MemoryBudget,
    /// Memory in bytes that each attempt reserves, if the agent declares it.
    declared_memory: Option<u64>,
    /// Start time of the wait for the resources.
    waits_since: Instant,
    /// Earlier wait in the queue of the agent.
    earlier_wait: Duration,
    /// Ticket in the queue for a workspace.
    ticket: Option<QueueTicket>,
    /// Receiver of notifications about freed resources.
    release_notices: watch::Receiver<WorkspaceWaiters>,
    /// Workspace of the present attempt.
    held_workspace: Option<HeldWorkspace>,
    /// Memory reservation, held until the attempt is cleaned up.
    reservation: Option<MemoryReservation>,
    /// Time of the first granted claim.
    first_granted_at: Option<Instant>,
}

/// Workspace that is held. Dropping it notifies the waiting executions.
struct HeldWorkspace {
    workspace: Workspace,
    workspace_queue: WorkspaceQueue,
}

impl Drop for HeldWorkspace {
    fn drop(&mut self) {
        self.workspace_queue.notify_waiting();
    }
}

/// Decision for a claim that failed because a resource is in use.
#[derive(Debug, PartialEq, Eq)]
struct WaitPlan {
    /// True if the memory stays reserved.
    keeps_memory: bool,
    /// Workspace in whose queue the execution waits.
    queued_workspace: Option<Workspace>,
}

impl WaitPlan {
    fn new(reason: QueueReason, workspace: Option<Workspace>) -> Self {
        Self {
            // For any other reason this execution cannot start now, so that others may use the memory meanwhile.
            keeps_memory: reason == QueueReason::InsufficientMemory,
            queued_workspace: workspace.filter(|_| reason == QueueReason::WorkspaceBusy),
        }
    }
}

impl ResourceClaim {
    /// Creates the state without a claim. `earlier_wait` is the wait in the queue of the agent, and `first_granted_at`
    /// the time of the first granted claim of an earlier attempt.
    pub(super) fn new(
        id: ExecutionId,
        declared_memory: Option<u64>,
        resources: &AttemptResources,
        (earlier_wait, first_granted_at): (Duration, Option<Instant>),
    ) -> Self {
        let AttemptResources { workspace_queue, memory_budget } = resources;
        Self {
            id,
            workspace_queue: workspace_queue.clone(),
            memory_budget: memory_budget.clone(),
            declared_memory,
            waits_since: Instant::now(),
            earlier_wait,
            ticket: None,
            release_notices: workspace_queue.subscribe(),
            held_workspace: None,
            reservation: None,
            first_granted_at,
        }
    }

    /// Reserves the memory of a new or repeated claim. Returns false if there is not enough memory.
    pub(super) fn try_reserve_memory_for_claim(&mut self) -> bool {
        let has_memory = self.reserve_memory();
        self.release_notices.mark_unchanged(); // Later releases must wake this execution.
        has_memory
    }

    fn reserve_memory(&mut self) -> bool {
        let Some(bytes) = self.declared_memory else { return true };
        self.reservation = None; // Reservation of an earlier failed claim.
        self.reservation = self.memory_budget.try_reserve(self.id, bytes, &self.workspace_queue);
        self.reservation.is_some()
    }

    /// Reserves the memory of a resumed attempt, regardless of the limit, because its work already uses it.
    pub(super) fn reserve_memory_unchecked(&mut self) {
        let reserve =
            |bytes| self.memory_budget.reserve_unchecked(self.id, bytes, &self.workspace_queue);
        self.reservation = self.declared_memory.map(reserve);
    }

    /// Holds the workspace of a granted claim.
    pub(super) fn apply_grant(&mut self, workspace: Option<Workspace>) {
        let workspace_queue = self.workspace_queue.clone();
        self.held_workspace =
            workspace.map(|workspace| HeldWorkspace { workspace, workspace_queue });
        self.leave_workspace_queue();
        // The claim of the first attempt stays the start of the duration.
        self.first_granted_at.get_or_insert_with(Instant::now);
    }

    /// Handles a claim that failed because a resource is in use. Returns the position of the wait.
    pub(super) fn handle_blocked_claim(&mut self, blocked: ClaimBlocked) -> Queued {
        let ClaimBlocked { reason, workspace, .. } = blocked;
        let plan = WaitPlan::new(reason, workspace);
        if !plan.keeps_memory {
            self.reservation = None;
        }
        let position = match plan.queued_workspace {
            Some(workspace) => self.join_workspace_queue(workspace),
            None => {
                self.leave_workspace_queue();
                1
            }
        };
        Queued::new(position, reason)
    }

    /// Joins the queue for a workspace, or keeps the ticket for it. Returns the position.
    fn join_workspace_queue(&mut self, workspace: Workspace) -> usize {
        let position = self.workspace_queue.position(self.id, &workspace);
        match &self.ticket {
            Some(ticket) => ticket.set_workspace(workspace),
            None => self.ticket = Some(self.workspace_queue.join(self.id, workspace)),
        }
        position
    }

    /// Repeats the claim when a resource may be free, and at the latest after `max_delay`.
    pub(super) fn schedule_retry(
        &self,
        tasks: &mut ExecutionBackgroundTasks,
        attempt_id: AttemptId,
        max_delay: Duration,
    ) {
        let mut release_notices = self.release_notices.clone();
        tasks.spawn(async move {
            _ = timeout(max_delay, release_notices.changed()).await; // Claims again in both cases.
            Some(ExecutionMsg::Event(ExecutionEvent::ClaimRetryDue { attempt_id }))
        });
    }

    /// Returns the wait for the attempt so far.
    pub(super) fn total_wait(&self) -> Duration {
        self.earlier_wait + self.waits_since.elapsed()
    }

    /// Returns the workspace of the present attempt.
    pub(super) fn workspace(&self) -> Option<Workspace> {
        self.held_workspace.as_ref().map(|held_workspace| held_workspace.workspace.clone())
    }

    /// Returns the time of the first granted claim.
    pub(super) const fn first_granted_at(&self) -> Option<Instant> {
        self.first_granted_at
    }

    /// Returns the time since the first granted claim.
    pub(super) fn elapsed_since_first_grant(&self) -> Option<Duration> {
        self.first_granted_at.map(|first_granted_at| first_granted_at.elapsed())
    }

    /// Releases the memory reservation, because the attempt is cleaned up.
    pub(super) fn release_memory(&mut self) {
        if let Some(reservation) = self.reservation.take() {
            reservation.release();
        }
    }

    /// Leaves the queue for a workspace.
    pub(super) fn leave_workspace_queue(&mut self) {
        self.ticket = None;
    }

    /// Releases the workspace, because the ledger has recorded the end.
    pub(super) fn release_workspace(&mut self) {
        self.held_workspace = None;
    }
}

#[cfg(test)]
mod tests;
