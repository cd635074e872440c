//! The line at the workspaces: executions of all agents join it, and hear when something is free.
//!
//! It holds no workspace: that is the ledger's to grant. It only lets those go first who arrived
//! first, and spares the rest to ask again and again.

use std::sync::Arc;

use tokio::sync::watch;

use crate::decide::turn::Waiters;
use crate::model::id::ExecutionId;
use crate::model::workspace::Workspace;

/// The line of a service. Cheap to clone.
#[derive(Clone, Default)]
pub struct Turns(Arc<watch::Sender<Waiters>>);

impl Turns {
    /// The place of an execution among those who wait for what it wants, from 1.
    pub(crate) fn place(&self, id: ExecutionId, workspace: &Workspace) -> usize {
        self.0.borrow().place(id, workspace)
    }

    /// Joins the line until the answer is dropped.
    pub(crate) fn join(&self, id: ExecutionId, workspace: Workspace) -> Turn {
        self.enter(id, workspace);
        Turn { id, turns: self.clone() }
    }

    /// Nobody hears of it: who joins frees nothing.
    fn enter(&self, id: ExecutionId, workspace: Workspace) {
        self.0.send_if_modified(|waiters| {
            waiters.join(id, workspace);
            false
        });
    }

    /// Tells those who wait that something may be free.
    pub(crate) fn stir(&self) {
        self.0.send_if_modified(|waiters| !waiters.is_empty());
    }

    /// Tells all who listen, whether they stand in the line or not.
    pub(crate) fn rouse(&self) {
        self.0.send_modify(|_| {});
    }

    /// Hears when something may be free.
    pub(crate) fn listen(&self) -> watch::Receiver<Waiters> {
        self.0.subscribe()
    }
}

/// A place in the line.
pub(crate) struct Turn {
    id: ExecutionId,
    turns: Turns,
}

impl Turn {
    /// Keeps its place, and waits for this from now on.
    pub(crate) fn wants(&self, workspace: Workspace) {
        self.turns.enter(self.id, workspace);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.0.send_if_modified(|waiters| waiters.leave(self.id));
    }
}
