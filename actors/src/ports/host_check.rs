//! Port for the preconditions of all executions.

use async_trait::async_trait;

use crate::model::host::host_fault::HostFault;

/// Examiner of the preconditions that every execution has: the folders of the service, and its process holder.
#[async_trait]
pub trait HostCheck: Send + Sync + 'static {
    /// Examines every precondition and restores those that the service can restore itself. Returns the others. A
    /// disk that hangs may delay the call for as long as it hangs.
    async fn repair_and_find_faults(&self) -> Vec<HostFault>;
}
