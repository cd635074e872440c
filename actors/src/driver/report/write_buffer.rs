//! Pending records of an attempt, which are written together with the next ones.

use std::sync::Arc;

use tokio::sync::watch;

use crate::ports::ledger::WriteBatch;

/// Pending records. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct WriteBuffer(Arc<watch::Sender<WriteBatch>>);

impl WriteBuffer {
    /// Appends records.
    pub(super) fn add(&self, batch: WriteBatch) {
        self.0.send_modify(|pending| pending.extend(batch));
    }

    /// Returns true if nothing is pending.
    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Removes and returns all pending records.
    pub(super) fn take(&self) -> WriteBatch {
        if self.is_empty() {
            WriteBatch::default()
        } else {
            self.0.send_replace(WriteBatch::default())
        }
    }
}
