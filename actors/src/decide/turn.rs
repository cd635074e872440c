//! Whose turn it is at a workspace: who arrived first, whatever its agent.

use std::collections::BTreeMap;

use crate::model::id::ExecutionId;
use crate::model::workspace::Workspace;

/// Those of all agents who wait for a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waiters {
    /// Ids grow with the time of arrival.
    by_arrival: BTreeMap<ExecutionId, Workspace>,
}

impl Waiters {
    /// One waits for a workspace. Who waits already may want another one now.
    pub fn join(&mut self, id: ExecutionId, workspace: Workspace) {
        self.by_arrival.insert(id, workspace);
    }

    /// One waits no longer. Answers whether it did.
    pub fn leave(&mut self, id: ExecutionId) -> bool {
        self.by_arrival.remove(&id).is_some()
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_arrival.is_empty()
    }

    /// The place of an execution among those who wait for what it wants, from 1, whether it waits
    /// already or not.
    #[must_use]
    pub fn place(&self, id: ExecutionId, workspace: &Workspace) -> usize {
        let earlier = self.by_arrival.range(..id);
        1 + earlier.filter(|(_, wanted)| wanted.overlaps(workspace)).count()
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
    fn who_arrived_first_is_first_for_what_overlaps_and_no_hindrance_for_the_rest() {
        let mut waiters = Waiters::default();
        waiters.join(id(3), Workspace::new("/srv/a/b"));
        waiters.join(id(1), Workspace::new("/srv/a"));
        waiters.join(id(2), Workspace::new("/srv/c"));
        let place =
            |waiters: &Waiters, number, path| waiters.place(id(number), &Workspace::new(path));
        let places = |waiters: &Waiters| {
            [(1, "/srv/a"), (2, "/srv/c"), (3, "/srv/a/b"), (4, "/srv"), (5, "/tmp")]
                .map(|(number, path)| place(waiters, number, path))
        };
        assert_eq!(places(&waiters), [1, 1, 2, 4, 1]);
        waiters.join(id(2), Workspace::new("/srv/a"));
        assert_eq!(places(&waiters), [1, 1, 3, 4, 1]);
        assert!(waiters.leave(id(1)) && !waiters.leave(id(1)));
        assert_eq!(places(&waiters), [1, 1, 2, 3, 1]);
    }
}
