//! The wall clock of this machine.

use algonius_actors::ports::clock::Clock;
use chrono::{DateTime, Utc};

/// Clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct WallClock;

impl Clock for WallClock {
    #[expect(clippy::disallowed_methods, reason = "this is the port's only implementation")]
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}
