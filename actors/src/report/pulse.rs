//! When an attempt last showed that it lives.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The last sign of life of an attempt. Whoever hears one notes it here, and whoever wants to know
/// looks here: no message is sent for each. Cheap to clone; all clones are of one attempt.
#[derive(Debug, Clone)]
pub struct Pulse {
    born: Instant,
    /// Nanoseconds from the birth to the last sign.
    last: Arc<AtomicU64>,
}

impl Default for Pulse {
    /// Born now, which is a sign.
    fn default() -> Self {
        Self { born: Instant::now(), last: Arc::default() }
    }
}

impl Pulse {
    /// It lives.
    pub fn beat(&self) {
        let now = u64::try_from(self.born.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.last.fetch_max(now, Ordering::Relaxed);
    }

    /// How long it has been silent.
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
    async fn a_sign_of_life_ends_the_silence_for_all_clones() {
        let pulse = Pulse::default();
        let heard = pulse.clone();
        tokio::time::advance(Duration::from_secs(7)).await;
        assert_eq!(pulse.quiet(), Duration::from_secs(7));
        heard.beat();
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(pulse.quiet(), Duration::from_millis(1));
    }
}
