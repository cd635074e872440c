//! Wall time, for what people read. Timers use tokio's clock, which tests can pause.

use chrono::{DateTime, Utc};

/// Tells the wall time.
pub trait Clock: Send + Sync + 'static {
    /// Now. May jump; never used to measure how long something took.
    fn now(&self) -> DateTime<Utc>;
}
