//! Wall clock that follows tokio's clock, which a test can pause.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

use crate::ports::clock::Clock;

/// Clock that starts at 2027-01-15 08:00:00 UTC, and follows tokio's clock.
pub struct VirtualClock {
    created_at: Instant,
    /// Number of readings until one panics; 0 is never.
    readings_until_panic: AtomicU32,
    /// Seconds by which the clock was set forward.
    offset_seconds: AtomicI64,
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self {
            created_at: Instant::now(),
            readings_until_panic: AtomicU32::new(0),
            offset_seconds: AtomicI64::new(0),
        }
    }
}

impl VirtualClock {
    /// Makes the reading with this number from now on panic: a fault in the actor that reads then.
    pub fn panic_at_reading(&self, reading_number: u32) {
        self.readings_until_panic.store(reading_number, Ordering::SeqCst);
    }

    /// Sets the clock forward, or back, by this many seconds.
    pub fn shift_wall_clock(&self, seconds: i64) {
        self.offset_seconds.fetch_add(seconds, Ordering::SeqCst);
    }

    /// Returns the creation time.
    #[must_use]
    pub const fn created_at(&self) -> Instant {
        self.created_at
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> DateTime<Utc> {
        let count_down = |readings_left: u32| readings_left.checked_sub(1);
        let readings_left =
            self.readings_until_panic.fetch_update(Ordering::SeqCst, Ordering::SeqCst, count_down);
        assert_ne!(readings_left, Ok(1), "the clock was read for the scripted panic");
        let offset = TimeDelta::seconds(self.offset_seconds.load(Ordering::SeqCst));
        let elapsed = TimeDelta::from_std(self.created_at.elapsed()).unwrap_or_default();
        DateTime::from_timestamp(1_800_000_000, 0).unwrap_or_default() + elapsed + offset
    }
}
