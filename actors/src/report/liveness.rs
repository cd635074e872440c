//! Time of the latest sign of life of an attempt.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Time of the latest sign of life of an attempt. Writers update it and readers poll it, so that no message is needed
/// for each. Clones are cheap and belong to the same attempt.
#[derive(Debug, Clone)]
pub struct Pulse {
    born: Instant,
    /// Nanoseconds from the creation to the latest sign of life.
    last: Arc<AtomicU64>,
}

impl Default for Pulse {
    /// Counts the creation as a sign of life.
    fn default() -> Self {
        Self { born: Instant::now(), last: Arc::default() }
    }
}

impl Pulse {
    /// Records a sign of life.
    pub fn beat(&self) {
        let now = u64::try_from(self.born.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.last.fetch_max(now, Ordering::Relaxed);
    }

    /// Returns the duration of the silence.
    #[must_use]
    pub fn quiet(&self) -> Duration {
        let last = Duration::from_nanos(self.last.load(Ordering::Relaxed));
        self.born.elapsed().saturating_sub(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn activity_resets_the_idle_time_of_all_clones() {
        let pulse = Pulse::default();
        let heard = pulse.clone();
        tokio::time::advance(Duration::from_secs(7)).await;
        assert_eq!(pulse.quiet(), Duration::from_secs(7));
        heard.beat();
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(pulse.quiet(), Duration::from_millis(1));
    }
}
