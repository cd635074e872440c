//! What the machine tells of itself.

use async_trait::async_trait;

use crate::model::pressure::Reading;

/// Reads the machine's gauges.
#[async_trait]
pub trait Meter: Send + Sync + 'static {
    /// Reads them now. What cannot be read is left out; it never fails, but a disk that hangs may
    /// keep it for as long as it hangs.
    async fn read(&self) -> Reading;

    /// All memory of the machine in bytes, where it tells.
    fn memory(&self) -> Option<u64> {
        None
    }
}
