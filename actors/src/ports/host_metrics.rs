//! Port for the resource readings of the machine.

use async_trait::async_trait;

use crate::model::host::pressure::HostReading;

/// Source of the machine's resource readings.
#[async_trait]
pub trait HostMetrics: Send + Sync + 'static {
    /// Reads all values. Values that cannot be read are absent. The call never fails, but a disk that hangs may delay
    /// it for as long as it hangs.
    async fn read(&self) -> HostReading;

    /// Returns the total memory of the machine in bytes, if known.
    fn total_memory(&self) -> Option<u64> {
        None
    }
}
