//! Slot statistics of an agent: the peak, and the numbers of started, delayed and rejected executions.

use std::time::Duration;

use crate::agent::queue::QueuedRequest;
use crate::model::observation::status::SlotStatistics;

/// Counters since the start of the agent's actor.
#[derive(Default)]
pub(super) struct Counts {
    pool: SlotStatistics,
    waited: Duration,
}

impl Counts {
    /// Counts the start of a queued execution, with the number of running ones.
    pub(super) fn record_start(&mut self, one: &QueuedRequest, patience: Duration, alive: usize) {
        let left = one.due.saturating_duration_since(tokio::time::Instant::now());
        self.waited += patience.saturating_sub(left);
        self.pool.begun += 1;
        self.pool.peak = self.pool.peak.max(alive);
    }

    /// Counts a rejected request.
    pub(super) const fn refused(&mut self) {
        self.pool.refused += 1;
    }

    /// Returns the statistics.
    pub(super) fn statistics(&self) -> SlotStatistics {
        let mean = self.waited.as_millis().checked_div(self.pool.begun.into()).unwrap_or_default();
        SlotStatistics { mean_wait_ms: u64::try_from(mean).unwrap_or(u64::MAX), ..self.pool }
    }
}
