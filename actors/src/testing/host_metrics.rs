//! Machine whose resource readings a test sets.

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::model::host::pressure::{HostReading, PressureSpec, StallReading};
use crate::ports::host_metrics::HostMetrics;

/// Meter that returns the configured reading; initially without pressure.
#[derive(Default)]
pub struct ScriptedHostMetrics(watch::Sender<HostReading>);

impl ScriptedHostMetrics {
    /// Sets the reading from now on.
    pub fn set_reading(&self, reading: HostReading) {
        self.0.send_replace(reading);
    }
}

#[async_trait]
impl HostMetrics for ScriptedHostMetrics {
    async fn read(&self) -> HostReading {
        *self.0.borrow()
    }
}

/// Interval of the readings in an environment with readings; mostly between its seconds.
pub const READING_INTERVAL: Duration = Duration::from_millis(700);

/// Limits of the machine: the usage limits are the well-known ones.
pub const PRESSURE_LIMITS: PressureSpec = PressureSpec {
    uses_stall_information: true,
    max_cpu_percent: 90.0,
    max_memory_percent: 85.0,
    max_load: 4.0,
    max_stalls: StallReading { cpu_percent: 90.0, memory_percent: 20.0, io_percent: 95.0 },
    max_load_per_core: 16.0,
    min_disk_free_bytes: 1_000_000_000,
};

/// Returns the reading of a machine with a full disk.
#[must_use]
pub fn full_disk() -> HostReading {
    HostReading { cores: 2, disk_free_bytes: Some(999_999), ..HostReading::default() }
}
