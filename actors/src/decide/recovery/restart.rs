//! Restart policy of actors: a limited number of restarts within a period, then quarantine.

use std::collections::VecDeque;
use std::time::Duration;

/// Restart limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartLimit {
    /// Maximum number of restarts within a period.
    pub max_restarts: usize,
    /// Length of the period.
    pub period: Duration,
}

impl Default for RestartLimit {
    /// Allows three restarts in a minute.
    fn default() -> Self {
        Self { max_restarts: 3, period: Duration::from_secs(60) }
    }
}

/// Decision about the failed actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartDecision {
    /// The actor is restarted.
    Restart,
    /// The actor stays stopped, and its callers receive an error.
    Quarantine,
}

/// Restarts of one actor within the period.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestartHistory {
    recent_restarts: VecDeque<Duration>,
    total: u32,
}

impl RestartHistory {
    /// Returns the total number of restarts.
    #[must_use]
    pub const fn total(&self) -> u32 {
        self.total
    }
}

/// Decides about a failure at `now`, which is the time since the supervision tree started.
#[must_use]
pub fn decide_restart(
    mut history: RestartHistory,
    now: Duration,
    limit: RestartLimit,
) -> (RestartHistory, RestartDecision) {
    let period_start = now.saturating_sub(limit.period);
    history.recent_restarts.retain(|at| *at > period_start || limit.period > now);
    if history.recent_restarts.len() >= limit.max_restarts {
        return (history, RestartDecision::Quarantine);
    }
    history.recent_restarts.push_back(now);
    history.total = history.total.saturating_add(1);
    (history, RestartDecision::Restart)
}

/// First and longest pause before the retry of a start that failed because of the ledger.
const START_RETRY_PAUSE_BOUNDS: (Duration, Duration) =
    (Duration::from_secs(1), Duration::from_secs(30));

/// Returns the pause before the retry of a start that failed because of the ledger, after a pause of `last_pause`. Such
/// a failure proves nothing about the actor, so it does not count as a restart. The pauses prevent useless retries.
#[must_use]
pub fn next_start_retry_pause(last_pause: Option<Duration>) -> Duration {
    let (first, longest) = START_RETRY_PAUSE_BOUNDS;
    last_pause.map_or(first, |last_pause| last_pause.saturating_mul(2).min(longest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decisions(seconds: &[u64]) -> Vec<RestartDecision> {
        let mut history = RestartHistory::default();
        let mut results = Vec::new();
        for second in seconds {
            let (next, decision) =
                decide_restart(history, Duration::from_secs(*second), RestartLimit::default());
            history = next;
            results.push(decision);
        }
        results
    }

    use RestartDecision::{Quarantine, Restart};

    #[test]
    fn the_fourth_failure_within_a_minute_quarantines() {
        assert_eq!(decisions(&[0, 1, 2, 3]), [Restart, Restart, Restart, Quarantine]);
        assert_eq!(decisions(&[100, 101, 102, 159]), [Restart, Restart, Restart, Quarantine]);
    }

    #[test]
    fn pauses_grow_from_a_second_to_half_a_minute() {
        let mut pauses = vec![next_start_retry_pause(None)];
        for _ in 0..6 {
            pauses.push(next_start_retry_pause(pauses.last().copied()));
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30].map(Duration::from_secs));
    }

    #[test]
    fn failures_far_apart_are_tolerated_forever() {
        assert_eq!(decisions(&[100, 101, 102, 161, 162, 163]), [Restart; 6]);
    }

    proptest! {
        /// No period has more restarts than allowed.
        #[test]
        fn no_period_has_more_restarts_than_allowed(gaps in proptest::collection::vec(0u64..40, 1..60)) {
            let mut history = RestartHistory::default();
            let (mut now, mut restart_times) = (0, Vec::new());
            for gap in gaps {
                now += gap;
                let (next, decision) = decide_restart(history, Duration::from_secs(now), RestartLimit::default());
                history = next;
                if decision == Restart {
                    restart_times.push(now);
                }
            }
            for window in restart_times.windows(4) {
                prop_assert!(window[3] - window[0] >= 60, "{restart_times:?}");
            }
        }
    }
}
