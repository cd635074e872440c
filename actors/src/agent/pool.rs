//! What the slots of an agent have seen: the most at once, how many began, waited and were refused.

use std::time::Duration;

use super::Waiting;
use crate::model::status::Pool;

/// Counts since the agent's actor began.
#[derive(Default)]
pub(super) struct Counts {
    pool: Pool,
    waited: Duration,
}

impl Counts {
    /// One that waited begins, as one of so many.
    pub(super) fn begun(&mut self, one: &Waiting, patience: Duration, alive: usize) {
        let left = one.due.saturating_duration_since(tokio::time::Instant::now());
        self.waited += patience.saturating_sub(left);
        self.pool.begun += 1;
        self.pool.peak = self.pool.peak.max(alive);
    }

    /// One is refused.
    pub(super) const fn refused(&mut self) {
        self.pool.refused += 1;
    }

    /// As it is told.
    pub(super) fn told(&self) -> Pool {
        let mean = self.waited.as_millis().checked_div(self.pool.begun.into()).unwrap_or_default();
        Pool { mean_wait_ms: u64::try_from(mean).unwrap_or(u64::MAX), ..self.pool }
    }
}
