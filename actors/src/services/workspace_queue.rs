//! Queue for the workspaces: executions of all agents join it, and are notified when a workspace may be free.
//!
//! The queue holds no workspace, because the ledger grants them. It only ensures the order of arrival, and saves the
//! other executions from repeated claims.

use std::sync::Arc;

use tokio::sync::watch;

use crate::decide::admission::workspace_waiters::WorkspaceWaiters;
use crate::model::agent::workspace::Workspace;
use crate::model::id::ExecutionId;

/// Workspace queue of a service. Clones are cheap.
#[derive(Clone, Default)]
pub struct WorkspaceQueue(Arc<watch::Sender<WorkspaceWaiters>>);

impl WorkspaceQueue {
    /// Returns the position of an execution among those that wait for an overlapping workspace, from 1.
    pub(crate) fn position(&self, id: ExecutionId, workspace: &Workspace) -> usize {
        self.0.borrow().position(id, workspace)
    }

    /// Joins the queue until the returned ticket is dropped.
    pub(crate) fn join(&self, id: ExecutionId, workspace: Workspace) -> QueueTicket {
        self.enqueue(id, workspace);
        QueueTicket { id, queue: self.clone() }
    }

    /// Adds an entry without a notification, because a new entry frees nothing.
    fn enqueue(&self, id: ExecutionId, workspace: Workspace) {
        self.0.send_if_modified(|waiters| {
            waiters.insert(id, workspace);
            false
        });
    }

    /// Notifies the waiting executions that a workspace may be free.
    pub(crate) fn notify_waiting(&self) {
        self.0.send_if_modified(|waiters| !waiters.is_empty());
    }

    /// Notifies all receivers, also those outside of the queue.
    pub(crate) fn notify_all(&self) {
        self.0.send_modify(|_| {});
    }

    /// Returns a receiver of notifications about freed workspaces.
    pub(crate) fn subscribe(&self) -> watch::Receiver<WorkspaceWaiters> {
        self.0.subscribe()
    }
}

/// Ticket in the queue.
pub(crate) struct QueueTicket {
    id: ExecutionId,
    queue: WorkspaceQueue,
}

impl QueueTicket {
    /// Keeps the position, and waits for this workspace from now on.
    pub(crate) fn set_workspace(&self, workspace: Workspace) {
        self.queue.enqueue(self.id, workspace);
    }
}

impl Drop for QueueTicket {
    fn drop(&mut self) {
        self.queue.0.send_if_modified(|waiters| waiters.remove(self.id));
    }
}
