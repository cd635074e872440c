//! Wall time that follows tokio's clock, which a test can pause.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

use crate::ports::clock::Clock;

/// Tells 2027-01-15 08:00:00 UTC when it is made, and goes on with tokio's clock.
pub struct VirtualClock {
    born: Instant,
    /// Readings until one panics; 0 is never.
    fuse: AtomicU32,
    /// Seconds by which somebody has set it forward.
    jumped: AtomicI64,
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self { born: Instant::now(), fuse: AtomicU32::new(0), jumped: AtomicI64::new(0) }
    }
}

impl VirtualClock {
    /// Lets the so-manieth reading from now panic: a fault in whichever actor reads then.
    pub fn arm(&self, reading: u32) {
        self.fuse.store(reading, Ordering::SeqCst);
    }

    /// Sets it forward, or back, by so many seconds.
    pub fn jump(&self, seconds: i64) {
        self.jumped.fetch_add(seconds, Ordering::SeqCst);
    }

    /// When it began.
    #[must_use]
    pub const fn born(&self) -> Instant {
        self.born
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> DateTime<Utc> {
        let burn = |left: u32| left.checked_sub(1);
        let left = self.fuse.fetch_update(Ordering::SeqCst, Ordering::SeqCst, burn);
        assert_ne!(left, Ok(1), "the armed clock was read");
        let jumped = TimeDelta::seconds(self.jumped.load(Ordering::SeqCst));
        let since = TimeDelta::from_std(self.born.elapsed()).unwrap_or_default();
        DateTime::from_timestamp(1_800_000_000, 0).unwrap_or_default() + since + jumped
    }
}
