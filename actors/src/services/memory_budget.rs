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
    limit: Option<u64>,
    reservations: Arc<watch::Sender<BTreeMap<ExecutionId, u64>>>,
}

impl MemoryBudget {
    /// Creates a budget of `limit` bytes.
    #[must_use]
    pub fn new(limit: Option<u64>) -> Self {
        Self { limit, reservations: Arc::default() }
    }

    /// Reserves memory; `None` if other executions use too much. A single execution may exceed the budget, because it
    /// would wait forever otherwise.
    pub(crate) fn try_reserve(
        &self,
        id: ExecutionId,
        bytes: u64,
        queue: &WorkspaceQueue,
    ) -> Option<MemoryReservation> {
        let is_reserved = self.reservations.send_if_modified(|reservations| {
            let other_reservations = reservations.iter().filter(|(other, _)| **other != id);
            let sum = other_reservations.fold(0, |sum: u64, (_, bytes)| sum.saturating_add(*bytes));
            let fits =
                sum == 0 || self.limit.is_none_or(|limit| sum.saturating_add(bytes) <= limit);
            if fits {
                reservations.insert(id, bytes);
            }
            fits
        });
        is_reserved.then(|| self.new_reservation(id, queue))
    }

    /// Reserves memory for a running execution, regardless of the limit.
    pub(crate) fn reserve_unchecked(
        &self,
        id: ExecutionId,
        bytes: u64,
        queue: &WorkspaceQueue,
    ) -> MemoryReservation {
        self.reservations.send_modify(|reservations| {
            reservations.insert(id, bytes);
        });
        self.new_reservation(id, queue)
    }

    fn new_reservation(&self, id: ExecutionId, queue: &WorkspaceQueue) -> MemoryReservation {
        MemoryReservation { id, memory_budget: self.clone(), workspace_queue: queue.clone() }
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
    pub(crate) fn release(self) {
        let queue = self.workspace_queue.clone();
        drop(self);
        queue.notify_all();
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.memory_budget.reservations.send_modify(|reservations| {
            reservations.remove(&self.id);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releasing_memory_wakes_waiters_but_a_failed_claim_does_not() {
        let (budget, queue) = (MemoryBudget::new(Some(10)), WorkspaceQueue::default());
        let mut changes = queue.subscribe();
        changes.mark_unchanged();
        drop(budget.try_reserve(ExecutionId::generate(), 6, &queue));
        assert!(!changes.has_changed().unwrap());
        budget.try_reserve(ExecutionId::generate(), 6, &queue).unwrap().release();
        assert!(changes.has_changed().unwrap());
    }

    #[test]
    fn a_memory_budget_admits_one_larger_claim_alone() {
        let (budget, queue) = (MemoryBudget::new(Some(10)), WorkspaceQueue::default());
        let reserve = |bytes| budget.try_reserve(ExecutionId::generate(), bytes, &queue);
        let first = reserve(6);
        assert!(first.is_some() && reserve(5).is_none());
        let second = reserve(4);
        assert!(second.is_some() && reserve(1).is_none());
        drop(first);
        assert!(reserve(7).is_none() && reserve(6).is_some());
        drop(second);
        let huge = reserve(99);
        assert!(huge.is_some() && reserve(1).is_none());
        let (unlimited, id) = (MemoryBudget::default(), ExecutionId::generate());
        let all: Vec<_> = (0..9)
            .map(|_| unlimited.try_reserve(ExecutionId::generate(), u64::MAX, &queue))
            .collect();
        assert!(all.iter().all(Option::is_some));
        let results = (budget.try_reserve(id, 0, &queue), budget.reserve_unchecked(id, 50, &queue));
        assert!(results.0.is_none(), "the huge one is there still");
    }
}
