//! Memory limits for request bodies in transfer, for all callers together and for each caller.
//!
//! Without a limit, one credential could hold a body of maximum size in every stream of every connection.
#![expect(
    clippy::disallowed_types,
    reason = "sums that requests change as they arrive and drop; no guard is held while it waits"
)]

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use axum::http::{HeaderMap, header};

/// Number of bytes for the bodies of all callers; the second constant is the minimum number of bodies of maximum
/// size.
const MIN_BUDGET_BYTES: usize = 128 << 20;
const MIN_FULL_SIZE_BODIES: usize = 16;
/// Divisor of the total limit that gives the limit of one caller.
const CALLER_SHARE_DIVISOR: usize = 4;

/// Limits of request bodies.
pub struct BodyLimits {
    /// Maximum size of a body, in bytes.
    pub max_bytes: usize,
    /// Memory for bodies that are being received.
    pub budget: BodyBudget,
    /// Maximum time for the receipt of a body.
    pub timeout: Duration,
}

impl BodyLimits {
    /// Creates the limits for bodies of this maximum size.
    #[must_use]
    pub fn new(max_bytes: usize, timeout: Duration) -> Self {
        Self { max_bytes, budget: BodyBudget::for_max_body_bytes(max_bytes), timeout }
    }
}

/// Memory budget for bodies. Cheap to clone.
#[derive(Debug, Clone)]
pub struct BodyBudget(Arc<BodyBudgetState>);

#[derive(Debug)]
struct BodyBudgetState {
    limit_bytes: usize,
    hasher: RandomState,
    held_bytes: Mutex<HeldBytes>,
}

#[derive(Debug, Default)]
struct HeldBytes {
    total: usize,
    /// Bytes in use, by the hash of the credential.
    by_caller: HashMap<u64, usize>,
}

impl BodyBudget {
    /// Creates the budget for bodies of this maximum size.
    #[must_use]
    pub fn for_max_body_bytes(max_body_bytes: usize) -> Self {
        // A larger maximum size must not leave room for a few bodies only: one caller may use a quarter.
        let limit_bytes = MIN_BUDGET_BYTES.max(max_body_bytes.saturating_mul(MIN_FULL_SIZE_BODIES));
        Self(Arc::new(BodyBudgetState {
            limit_bytes,
            hasher: RandomState::new(),
            held_bytes: Mutex::default(),
        }))
    }

    /// Starts a body of the caller with these headers. Callers without a bearer token share one limit.
    pub(super) fn start_reservation(&self, headers: &HeaderMap) -> BodyReservation {
        let credential = headers.get(header::AUTHORIZATION).map(|value| value.as_bytes());
        // A hash with a random key: the table holds no credential, and nobody can choose one that collides with
        // another.
        BodyReservation {
            budget: self.clone(),
            caller_hash: self.0.hasher.hash_one(credential),
            bytes: 0,
        }
    }
}

/// Reserved memory of one body. Dropping the value releases the memory.
#[derive(Debug)]
pub(super) struct BodyReservation {
    budget: BodyBudget,
    caller_hash: u64,
    bytes: usize,
}

impl BodyReservation {
    /// Reserves memory for more bytes of the body.
    ///
    /// # Errors
    /// `pressure` if all callers together, or this caller, have reached their limit.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), Failure> {
        let shared = &self.budget.0;
        let mut held = shared.held_bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let caller_bytes =
            held.by_caller.get(&self.caller_hash).copied().unwrap_or_default() + bytes;
        // Checked before anything is added, so that a refused body leaves no trace in the sums.
        if held.total + bytes > shared.limit_bytes
            || caller_bytes > shared.limit_bytes / CALLER_SHARE_DIVISOR
        {
            return Err(Failure::new(Code::Pressure, "too many request bodies arrive at once"));
        }
        held.total += bytes;
        held.by_caller.insert(self.caller_hash, caller_bytes);
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for BodyReservation {
    fn drop(&mut self) {
        let mut held = self.budget.0.held_bytes.lock().unwrap_or_else(PoisonError::into_inner);
        held.total = held.total.saturating_sub(self.bytes);
        if let Some(caller_bytes) = held.by_caller.get_mut(&self.caller_hash) {
            *caller_bytes = caller_bytes.saturating_sub(self.bytes);
            // Otherwise each credential that was ever presented would keep an entry.
            if *caller_bytes == 0 {
                held.by_caller.remove(&self.caller_hash);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(token: &str) -> HeaderMap {
        let value = format!("Bearer {token}").parse().expect("a header");
        HeaderMap::from_iter([(header::AUTHORIZATION, value)])
    }

    #[test]
    fn one_caller_may_use_a_quarter_of_the_body_memory() {
        let budget = BodyBudget::for_max_body_bytes(1024);
        let mut first_caller = budget.start_reservation(&headers("ann"));
        assert_eq!(first_caller.grow(MIN_BUDGET_BYTES / CALLER_SHARE_DIVISOR), Ok(()));
        let refused = budget.start_reservation(&headers("ann")).grow(1).err();
        assert_eq!(refused.map(|failure| failure.code), Some(Code::Pressure));
        let mut other_callers =
            ["bob", "cid", "dan"].map(|name| budget.start_reservation(&headers(name)));
        for other in &mut other_callers {
            assert_eq!(other.grow(MIN_BUDGET_BYTES / CALLER_SHARE_DIVISOR), Ok(()));
        }
        let mut last = budget.start_reservation(&headers("eve"));
        assert!(last.grow(1).is_err());
        drop(first_caller);
        assert_eq!(last.grow(1), Ok(()));
        drop((other_callers, last));
        let held = budget.0.held_bytes.lock().expect("no panic");
        assert_eq!((held.total, held.by_caller.len()), (0, 0));
    }

    #[test]
    fn a_quarter_holds_several_bodies_of_maximum_size() {
        let largest = 1 << 30;
        let mut body = BodyBudget::for_max_body_bytes(largest).start_reservation(&HeaderMap::new());
        assert_eq!(body.grow(largest), Ok(()));
    }
}
