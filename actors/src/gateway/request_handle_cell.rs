//! Cell for the handle of the requests. Drivers exist before the gateway, so they receive the handle later.

use std::sync::Arc;

use tokio::sync::watch;

use super::requests::RequestHandle;

/// Cell that the start of the tree fills. Clones share the handle.
#[derive(Clone, Default)]
pub struct RequestHandleCell(Arc<watch::Sender<Option<RequestHandle>>>);

impl RequestHandleCell {
    /// Fills the cell.
    pub(crate) fn fill(&self, handle: RequestHandle) {
        self.0.send_replace(Some(handle));
    }

    /// Returns the handle once the cell is filled.
    pub(crate) async fn wait_for_handle(&self) -> RequestHandle {
        let mut changes = self.0.subscribe();
        loop {
            let handle = changes.borrow_and_update().clone();
            match handle {
                Some(requests) => return requests,
                None => _ = changes.changed().await, // This cell holds the sender.
            }
        }
    }
}
