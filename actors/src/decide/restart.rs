//! Whether a failed actor is started again: at most so often in so long, then never.

use std::collections::VecDeque;
use std::time::Duration;

/// How often is too often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intensity {
    /// Restarts that are borne within a period.
    pub max: usize,
    /// The period.
    pub period: Duration,
}

impl Default for Intensity {
    /// Three restarts in a minute.
    fn default() -> Self {
        Self { max: 3, period: Duration::from_secs(60) }
    }
}

/// What becomes of the failed actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is started again.
    Restart,
    /// It is left dead, and its callers are told so.
    Quarantine,
}

/// The restarts of one actor within the period.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restarts {
    recent: VecDeque<Duration>,
    total: u32,
}

impl Restarts {
    /// How often the actor was started again in all.
    #[must_use]
    pub const fn total(&self) -> u32 {
        self.total
    }
}

/// Decides about a failure at `now`, which is the time since the tree began.
#[must_use]
pub fn step(mut restarts: Restarts, now: Duration, intensity: Intensity) -> (Restarts, Verdict) {
    let begin = now.saturating_sub(intensity.period);
    restarts.recent.retain(|at| *at > begin || intensity.period > now);
    if restarts.recent.len() >= intensity.max {
        return (restarts, Verdict::Quarantine);
    }
    restarts.recent.push_back(now);
    restarts.total = restarts.total.saturating_add(1);
    (restarts, Verdict::Restart)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn verdicts(seconds: &[u64]) -> Vec<Verdict> {
        let mut restarts = Restarts::default();
        let mut verdicts = Vec::new();
        for second in seconds {
            let (next, verdict) =
                step(restarts, Duration::from_secs(*second), Intensity::default());
            restarts = next;
            verdicts.push(verdict);
        }
        verdicts
    }

    use Verdict::{Quarantine, Restart};

    #[test]
    fn the_fourth_failure_in_a_minute_is_one_too_many() {
        assert_eq!(verdicts(&[0, 1, 2, 3]), [Restart, Restart, Restart, Quarantine]);
        assert_eq!(verdicts(&[100, 101, 102, 159]), [Restart, Restart, Restart, Quarantine]);
    }

    #[test]
    fn failures_that_are_far_apart_are_borne_for_ever() {
        assert_eq!(verdicts(&[100, 101, 102, 161, 162, 163]), [Restart; 6]);
    }

    proptest! {
        /// In no period are there more restarts than allowed.
        #[test]
        fn no_period_has_more_restarts_than_allowed(gaps in proptest::collection::vec(0u64..40, 1..60)) {
            let mut restarts = Restarts::default();
            let (mut now, mut made) = (0, Vec::new());
            for gap in gaps {
                now += gap;
                let (next, verdict) = step(restarts, Duration::from_secs(now), Intensity::default());
                restarts = next;
                if verdict == Restart {
                    made.push(now);
                }
            }
            for window in made.windows(4) {
                prop_assert!(window[3] - window[0] >= 60, "{made:?}");
            }
        }
    }
}
