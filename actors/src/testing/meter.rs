//! A machine whose gauges a test sets.

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::model::pressure::{PressureSpec, Reading, Stalls};
use crate::ports::meter::Meter;

/// Tells what it was set to; a machine at ease at first.
#[derive(Default)]
pub struct ScriptedMeter(watch::Sender<Reading>);

impl ScriptedMeter {
    /// Sets what is read from now on.
    pub fn set(&self, reading: Reading) {
        self.0.send_replace(reading);
    }
}

#[async_trait]
impl Meter for ScriptedMeter {
    async fn read(&self) -> Reading {
        *self.0.borrow()
    }
}

/// From one reading to the next in a world whose machine is watched; mostly between its seconds.
pub const PACE: Duration = Duration::from_millis(700);

/// The bounds of a machine: those of usage are the well-known ones.
pub const BOUNDS: PressureSpec = PressureSpec {
    by_stalls: true,
    cpu_percent: 90.0,
    memory_percent: 85.0,
    load: 4.0,
    stalls: Stalls { cpu_percent: 90.0, memory_percent: 20.0, io_percent: 95.0 },
    load_per_core: 16.0,
    min_disk_free_bytes: 1_000_000_000,
};

/// A machine without room on its disk.
#[must_use]
pub fn full_disk() -> Reading {
    Reading { cores: 2, disk_free_bytes: Some(999_999), ..Reading::default() }
}
