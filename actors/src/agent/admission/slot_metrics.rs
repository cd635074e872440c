//! Slot statistics of an agent: the peak, and the numbers of started, delayed and rejected executions.

use std::time::Duration;

use crate::agent::queue::QueuedRequest;
use crate::model::observation::status::SlotStatistics;

/// Counters since the start of the agent's actor.
#[derive(Default)]
pub(super) struct SlotCounters {
    statistics: SlotStatistics,
    total_wait: Duration,
}

impl SlotCounters {
    /// Counts the start of a queued execution, with the number of running ones.
    pub(super) fn record_start(
        &mut self,
        entry: &QueuedRequest,
        queue_timeout: Duration,
        running_count: usize,
    ) {
        let remaining = entry.deadline.saturating_duration_since(tokio::time::Instant::now());
        self.total_wait += queue_timeout.saturating_sub(remaining);
        self.statistics.started += 1;
        self.statistics.peak = self.statistics.peak.max(running_count);
    }

    /// Counts a rejected request.
    pub(super) const fn record_rejection(&mut self) {
        self.statistics.refused += 1;
    }

    /// Returns the statistics.
    pub(super) fn statistics(&self) -> SlotStatistics {
        let mean_ms = self
            .total_wait
            .as_millis()
            .checked_div(self.statistics.started.into())
            .unwrap_or_default();
        SlotStatistics {
            mean_wait_ms: u64::try_from(mean_ms).unwrap_or(u64::MAX),
            ..self.statistics
        }
    }
}
