//! How far an execution is, as told to those who wait for it.

use std::fmt;
use std::sync::Arc;

use super::budget::Charge;
use super::execution::{Fence, Outcome, Stamp, State};
use super::queue::Queued;
use super::quota::Parked;
use super::record::Record;

/// The text of an answer as the agent gave it, with all secrets in it. It lives in memory only, as
/// long as somebody holds it, and is for the owner of the execution alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Raw {
    /// The attempt that gave it.
    pub stamp: Stamp,
    /// What it gave, as far as its output is kept.
    pub text: Arc<str>,
}

impl fmt::Debug for Raw {
    /// Leaves the text out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Raw").field("stamp", &self.stamp).finish_non_exhaustive()
    }
}

/// Where an execution stays that is parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stay {
    /// Until when.
    pub parked: Parked,
    /// The attempt that failed.
    pub stamp: Stamp,
    /// The generation of its claim.
    pub fence: Fence,
    /// What it has used up.
    pub spent: Charge,
}

impl Stay {
    /// Where one stays by the ledger.
    #[must_use]
    pub const fn of(record: &Record, parked: Parked) -> Self {
        Self { parked, stamp: record.stamp, fence: record.fence, spent: record.spent }
    }
}

/// How far an execution is, for those who wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Where it is.
    pub state: State,
    /// What it waits for before it begins.
    pub queued: Option<Queued>,
    /// Where it stays while it is parked; set once the ledger has it, and its actor lets go.
    pub parked: Option<Stay>,
    /// How it ended; set once the ledger has it.
    pub outcome: Option<Outcome>,
    /// Grows with every record of it in the ledger.
    pub news: u64,
    /// The answer's text as it was given, where its owner may have it so.
    pub raw: Option<Raw>,
}

impl Progress {
    /// The progress of what has only been accepted.
    #[must_use]
    pub const fn accepted() -> Self {
        Self { state: State::Idle, queued: None, parked: None, outcome: None, news: 0, raw: None }
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
