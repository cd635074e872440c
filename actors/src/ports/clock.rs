//! Wall clock for timestamps that people read. Timers use tokio's clock, which tests can pause.

use chrono::{DateTime, Utc};

/// Wall clock.
pub trait Clock: Send + Sync + 'static {
    /// Returns the present time. The time may jump; never measure durations with it.
    fn now(&self) -> DateTime<Utc>;
}
