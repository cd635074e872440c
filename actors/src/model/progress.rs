//! How far an execution is, as told to those who wait for it.

use super::execution::{Outcome, State};

/// How far an execution is, for those who wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Where it is.
    pub state: State,
    /// How it ended; set once the ledger has it.
    pub outcome: Option<Outcome>,
    /// Grows with every record of it in the ledger.
    pub news: u64,
}

impl Progress {
    /// The progress of what has only been accepted.
    #[must_use]
    pub const fn accepted() -> Self {
        Self { state: State::Idle, outcome: None, news: 0 }
    }

    /// Something was recorded.
    pub const fn has_news(&mut self) {
        self.news += 1;
    }
}
