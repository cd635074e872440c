//! Limits of request bodies: size, time, and memory for the bodies in transfer.

use std::time::Duration;

use super::caller_budget::CallerBudget;

/// Number of bytes for the bodies of all callers; the second constant is the minimum number of bodies of maximum
/// size.
const MIN_BUDGET_BYTES: usize = 128 << 20;
const MIN_FULL_SIZE_BODIES: usize = 16;

/// Limits of request bodies.
pub struct BodyLimits {
    /// Maximum size of a body, in bytes.
    pub max_bytes: usize,
    /// Memory for bodies that are being received.
    pub budget: CallerBudget,
    /// Maximum time for the receipt of a body.
    pub timeout: Duration,
}

impl BodyLimits {
    /// Creates the limits for bodies of this maximum size.
    #[must_use]
    pub fn new(max_bytes: usize, timeout: Duration) -> Self {
        Self { max_bytes, budget: budget_for_max_body_bytes(max_bytes), timeout }
    }
}

/// Creates the budget for bodies of this maximum size.
fn budget_for_max_body_bytes(max_body_bytes: usize) -> CallerBudget {
    // A larger maximum size must not leave room for a few bodies only: one caller may use a quarter.
    CallerBudget::new(MIN_BUDGET_BYTES.max(max_body_bytes.saturating_mul(MIN_FULL_SIZE_BODIES)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_holds_several_bodies_of_maximum_size() {
        let largest = 1 << 30;
        let mut bodies = budget_for_max_body_bytes(largest).start_reservation(None);
        assert!(bodies.try_grow(4 * largest));
        assert!(!bodies.try_grow(1));
    }
}
