//! How far an execution is, as told to those who wait for it.

use super::execution::{Outcome, State};
use super::queue::Queued;

/// How far an execution is, for those who wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Where it is.
    pub state: State,
    /// What it waits for before it begins.
    pub queued: Option<Queued>,
    /// How it ended; set once the ledger has it.
    pub outcome: Option<Outcome>,
    /// Grows with every record of it in the ledger.
    pub news: u64,
}

impl Progress {
    /// The progress of what has only been accepted.
    #[must_use]
    pub const fn accepted() -> Self {
        Self { state: State::Idle, queued: None, outcome: None, news: 0 }
    }

    /// It waits in this place, or in none. Answers whether that is new.
    pub fn waits(&mut self, queued: Option<Queued>) -> bool {
        let is_new = self.queued != queued;
        self.queued = queued;
        is_new
    }

    /// Something was recorded.
    pub const fn has_news(&mut self) {
        self.news += 1;
    }
}
