//! Memory that callers share: a limit for all callers together, and a limit for each caller.
//!
//! Without a limit, one credential could hold a body of maximum size in every stream of every connection.
#![expect(
    clippy::disallowed_types,
    reason = "sums that requests change as their bytes arrive and leave; no guard is held while it waits"
)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use algonius_actors::model::id::PrincipalId;

/// Divisor of the total limit that gives the limit of one caller.
const CALLER_SHARE_DIVISOR: usize = 4;

/// Memory budget. Cheap to clone.
#[derive(Debug, Clone)]
pub struct CallerBudget(Arc<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    limit_bytes: usize,
    held_bytes: Mutex<HeldBytes>,
}

#[derive(Debug, Default)]
struct HeldBytes {
    total: usize,
    /// Bytes in use, by caller. Callers without credentials are one caller.
    by_caller: HashMap<Option<PrincipalId>, usize>,
}

impl CallerBudget {
    /// Creates a budget of this many bytes.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self(Arc::new(BudgetState { limit_bytes, held_bytes: Mutex::default() }))
    }

    /// Starts an empty reservation of a caller. All callers without credentials share one limit.
    pub(super) fn start_reservation(&self, caller: Option<PrincipalId>) -> CallerReservation {
        CallerReservation { budget: self.clone(), caller, bytes: 0 }
    }

    fn lock_held_bytes(&self) -> MutexGuard<'_, HeldBytes> {
        self.0.held_bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reserved memory of one body. Dropping the value releases the memory.
#[derive(Debug)]
pub(super) struct CallerReservation {
    budget: CallerBudget,
    caller: Option<PrincipalId>,
    bytes: usize,
}

impl CallerReservation {
    /// Reserves further bytes. Returns false, and reserves nothing, if all callers together or this caller would
    /// exceed the limit.
    #[must_use]
    pub(super) fn try_grow(&mut self, bytes: usize) -> bool {
        let limit_bytes = self.budget.0.limit_bytes;
        self.grow_if(bytes, |held, caller_bytes| {
            // Checked before anything is added, so that a refused body leaves no trace in the sums.
            held.total + bytes <= limit_bytes
                && caller_bytes + bytes <= limit_bytes / CALLER_SHARE_DIVISOR
        })
    }

    /// Reserves further bytes like [`Self::try_grow`], and in any case if the caller holds no memory.
    #[must_use]
    pub(super) fn try_grow_or_be_only(&mut self, bytes: usize) -> bool {
        self.try_grow(bytes) || self.grow_if(bytes, |_, caller_bytes| caller_bytes == 0)
    }

    fn grow_if(
        &mut self,
        bytes: usize,
        is_permitted: impl FnOnce(&HeldBytes, usize) -> bool,
    ) -> bool {
        let mut held = self.budget.lock_held_bytes();
        let caller_bytes = held.by_caller.get(&self.caller).copied().unwrap_or_default();
        if !is_permitted(&held, caller_bytes) {
            return false;
        }
        held.total += bytes;
        held.by_caller.insert(self.caller, caller_bytes + bytes);
        self.bytes += bytes;
        true
    }
}

impl Drop for CallerReservation {
    fn drop(&mut self) {
        let mut held = self.budget.lock_held_bytes();
        held.total = held.total.saturating_sub(self.bytes);
        if let Some(caller_bytes) = held.by_caller.get_mut(&self.caller) {
            *caller_bytes = caller_bytes.saturating_sub(self.bytes);
            // Otherwise each caller of the past would keep an entry.
            if *caller_bytes == 0 {
                held.by_caller.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const LIMIT_BYTES: usize = 1000;
    const SHARE_BYTES: usize = LIMIT_BYTES / CALLER_SHARE_DIVISOR;

    fn caller(number: u8) -> Option<PrincipalId> {
        Some(PrincipalId(Uuid::from_bytes([number; 16])))
    }

    #[test]
    fn one_caller_may_use_a_quarter_of_the_memory() {
        let budget = CallerBudget::new(LIMIT_BYTES);
        let mut first = budget.start_reservation(caller(1));
        assert!(first.try_grow(SHARE_BYTES));
        assert!(!budget.start_reservation(caller(1)).try_grow(1));
        let mut others = [None, caller(2), caller(3)].map(|id| budget.start_reservation(id));
        for other in &mut others {
            assert!(other.try_grow(SHARE_BYTES));
        }
        assert!(!budget.start_reservation(None).try_grow(1));
        let mut last = budget.start_reservation(caller(4));
        assert!(!last.try_grow(1));
        drop(first);
        assert!(last.try_grow(1));
        drop((others, last));
        let held = budget.lock_held_bytes();
        assert_eq!((held.total, held.by_caller.len()), (0, 0));
    }

    #[test]
    fn a_caller_without_memory_may_exceed_the_limit_once() {
        let budget = CallerBudget::new(LIMIT_BYTES);
        let mut largest = budget.start_reservation(caller(1));
        assert!(largest.try_grow_or_be_only(2 * LIMIT_BYTES));
        assert!(!budget.start_reservation(caller(1)).try_grow_or_be_only(1));
        assert!(!budget.start_reservation(caller(2)).try_grow(1));
        assert!(budget.start_reservation(caller(2)).try_grow_or_be_only(1));
    }
}
