//! What an attempt has to write and may still keep back: it is written with what follows.

use std::sync::Arc;

use tokio::sync::watch;

use crate::ports::ledger::Lines;

/// Lines that wait. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Pending(Arc<watch::Sender<Lines>>);

impl Pending {
    /// These come after those that wait.
    pub(super) fn add(&self, lines: Lines) {
        self.0.send_modify(|waiting| waiting.extend(lines));
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// All that waits.
    pub(super) fn take(&self) -> Lines {
        if self.is_empty() { Lines::default() } else { self.0.send_replace(Lines::default()) }
    }
}
