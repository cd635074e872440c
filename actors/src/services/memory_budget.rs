//! Memory budget of all executions: an execution whose agent declares its memory starts once enough of the budget is
//! free.
//!
//! The budget uses the declared memory and not measurements: a program that has just started uses little memory, and
//! ten of them would all be admitted.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use crate::model::id::ExecutionId;
use crate::services::workspace_queue::WorkspaceQueue;

/// Memory budget of a service. Clones are cheap; without a limit every reservation succeeds.
#[derive(Clone, Default)]
pub struct MemoryBudget {
    most: Option<u64>,
    taken: Arc<watch::Sender<BTreeMap<ExecutionId, u64>>>,
}

impl MemoryBudget {
    /// Creates a budget of `most` bytes.
    #[must_use]
    pub fn of(most: Option<u64>) -> Self {
        Self { most, taken: Arc::default() }
    }

    /// Reserves memory; `None` if other executions use too much. A single execution may exceed the budget, because it
    /// would wait forever otherwise.
    pub(crate) fn enter(
        &self,
        id: ExecutionId,
        bytes: u64,
        turns: &WorkspaceQueue,
    ) -> Option<MemoryReservation> {
        let is_in = self.taken.send_if_modified(|taken| {
            let others = taken.iter().filter(|(other, _)| **other != id);
            let sum = others.fold(0, |sum: u64, (_, bytes)| sum.saturating_add(*bytes));
            let fits = sum == 0 || self.most.is_none_or(|most| sum.saturating_add(bytes) <= most);
            if fits {
                taken.insert(id, bytes);
            }
            fits
        });
        is_in.then(|| self.reserve(id, turns))
    }

    /// Reserves memory for a running execution, regardless of the limit.
    pub(crate) fn occupy(
        &self,
        id: ExecutionId,
        bytes: u64,
        turns: &WorkspaceQueue,
    ) -> MemoryReservation {
        self.taken.send_modify(|taken| {
            taken.insert(id, bytes);
        });
        self.reserve(id, turns)
    }

    fn reserve(&self, id: ExecutionId, turns: &WorkspaceQueue) -> MemoryReservation {
        MemoryReservation { id, memory_budget: self.clone(), workspace_queue: turns.clone() }
    }
}

/// Memory reservation. Dropping it releases the memory without a notification: an execution that waits for another
/// resource reserves and releases memory repeatedly, and would wake others in a loop.
pub(crate) struct MemoryReservation {
    id: ExecutionId,
    memory_budget: MemoryBudget,
    workspace_queue: WorkspaceQueue,
}

impl MemoryReservation {
    /// Releases the memory, and notifies waiting executions.
    pub(crate) fn leave(self) {
        let turns = self.workspace_queue.clone();
        drop(self);
        turns.notify_all();
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.memory_budget.taken.send_modify(|taken| {
            taken.remove(&self.id);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releasing_memory_wakes_waiters_but_a_failed_claim_does_not() {
        let (room, turns) = (MemoryBudget::of(Some(10)), WorkspaceQueue::default());
        let mut news = turns.listen();
        news.mark_unchanged();
        drop(room.enter(ExecutionId::fresh(), 6, &turns));
        assert!(!news.has_changed().unwrap());
        room.enter(ExecutionId::fresh(), 6, &turns).unwrap().leave();
        assert!(news.has_changed().unwrap());
    }

    #[test]
    fn a_memory_budget_admits_one_larger_claim_alone() {
        let (room, turns) = (MemoryBudget::of(Some(10)), WorkspaceQueue::default());
        let enter = |bytes| room.enter(ExecutionId::fresh(), bytes, &turns);
        let first = enter(6);
        assert!(first.is_some() && enter(5).is_none());
        let second = enter(4);
        assert!(second.is_some() && enter(1).is_none());
        drop(first);
        assert!(enter(7).is_none() && enter(6).is_some());
        drop(second);
        let huge = enter(99);
        assert!(huge.is_some() && enter(1).is_none());
        let (endless, id) = (MemoryBudget::default(), ExecutionId::fresh());
        let all: Vec<_> =
            (0..9).map(|_| endless.enter(ExecutionId::fresh(), u64::MAX, &turns)).collect();
        assert!(all.iter().all(Option::is_some));
        let again = (room.enter(id, 0, &turns), room.occupy(id, 50, &turns));
        assert!(again.0.is_none(), "the huge one is there still");
    }
}
