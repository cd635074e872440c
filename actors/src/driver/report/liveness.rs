//! Time of the latest sign of life of an attempt.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Time of the latest sign of life of an attempt. Writers update it and readers poll it, so that no message is needed
/// for each. Clones are cheap and belong to the same attempt.
#[derive(Debug, Clone)]
pub struct Liveness {
    created_at: Instant,
    /// Nanoseconds from the creation to the latest sign of life.
    last_activity_ns: Arc<AtomicU64>,
}

impl Default for Liveness {
    /// Counts the creation as a sign of life.
    fn default() -> Self {
        Self { created_at: Instant::now(), last_activity_ns: Arc::default() }
    }
}

impl Liveness {
    /// Records a sign of life.
    pub fn record_activity(&self) {
        let elapsed_ns = u64::try_from(self.created_at.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.last_activity_ns.fetch_max(elapsed_ns, Ordering::Relaxed);
    }

    /// Returns the duration of the silence.
    #[must_use]
    pub fn idle_time(&self) -> Duration {
        let last_activity = Duration::from_nanos(self.last_activity_ns.load(Ordering::Relaxed));
        self.created_at.elapsed().saturating_sub(last_activity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn activity_resets_the_idle_time_of_all_clones() {
        let liveness = Liveness::default();
        let clone = liveness.clone();
        tokio::time::advance(Duration::from_secs(7)).await;
        assert_eq!(liveness.idle_time(), Duration::from_secs(7));
        clone.record_activity();
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(liveness.idle_time(), Duration::from_millis(1));
    }
}
