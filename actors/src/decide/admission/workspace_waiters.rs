//! Fair order at a workspace: first come, first served, across all agents.

use std::collections::BTreeMap;

use crate::model::agent::workspace::Workspace;
use crate::model::id::ExecutionId;

/// Executions of all agents that wait for a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceWaiters {
    /// Waiting executions by id; ids grow with the time of arrival.
    by_arrival: BTreeMap<ExecutionId, Workspace>,
}

impl WorkspaceWaiters {
    /// Adds an execution that waits for a workspace. An execution that already waits may change its workspace.
    pub fn insert(&mut self, id: ExecutionId, workspace: Workspace) {
        self.by_arrival.insert(id, workspace);
    }

    /// Removes an execution. Returns true if it was waiting.
    pub fn remove(&mut self, id: ExecutionId) -> bool {
        self.by_arrival.remove(&id).is_some()
    }

    /// Returns true if no execution waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_arrival.is_empty()
    }

    /// Returns the position of an execution among those that wait for an overlapping workspace, from 1, whether the
    /// execution already waits or not.
    #[must_use]
    pub fn position(&self, id: ExecutionId, workspace: &Workspace) -> usize {
        let earlier = self.by_arrival.range(..id);
        1 + earlier.filter(|(_, other)| other.overlaps(workspace)).count()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const fn id(number: u128) -> ExecutionId {
        ExecutionId(Uuid::from_u128(number))
    }

    #[test]
    fn overlapping_workspaces_are_served_in_order_of_arrival() {
        let mut waiters = WorkspaceWaiters::default();
        waiters.insert(id(3), Workspace::new("/srv/a/b"));
        waiters.insert(id(1), Workspace::new("/srv/a"));
        waiters.insert(id(2), Workspace::new("/srv/c"));
        let position = |waiters: &WorkspaceWaiters, number, path| {
            waiters.position(id(number), &Workspace::new(path))
        };
        let positions = |waiters: &WorkspaceWaiters| {
            [(1, "/srv/a"), (2, "/srv/c"), (3, "/srv/a/b"), (4, "/srv"), (5, "/tmp")]
                .map(|(number, path)| position(waiters, number, path))
        };
        assert_eq!(positions(&waiters), [1, 1, 2, 4, 1]);
        waiters.insert(id(2), Workspace::new("/srv/a"));
        assert_eq!(positions(&waiters), [1, 1, 3, 4, 1]);
        assert!(waiters.remove(id(1)) && !waiters.remove(id(1)));
        assert_eq!(positions(&waiters), [1, 1, 2, 3, 1]);
    }
}
