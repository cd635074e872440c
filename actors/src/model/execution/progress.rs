//! Progress of an execution, as published to its waiters.

use std::fmt;
use std::sync::Arc;

use super::event::TextChannel;
use super::followers::Followers;
use super::record::Record;
use super::{AttemptId, Fence, Outcome, State};
use crate::model::agent::budget::Charge;
use crate::model::agent::queue::Queued;
use crate::model::agent::quota::Deferral;

/// Raw text of an answer, with all secrets. The text stays in memory only, while a reference exists, and is for the
/// owner of the execution alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Raw {
    /// Attempt that produced the text.
    pub stamp: AttemptId,
    /// Text, as far as the output limits keep it.
    pub text: Arc<str>,
}

impl fmt::Debug for Raw {
    /// Omits the text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Raw").field("stamp", &self.stamp).finish_non_exhaustive()
    }
}

/// State of a deferred execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stay {
    /// Deferral with its end time.
    pub parked: Deferral,
    /// Attempt that failed.
    pub stamp: AttemptId,
    /// Generation of the claim.
    pub fence: Fence,
    /// Amounts that the execution has used.
    pub spent: Charge,
}

impl Stay {
    /// Returns the state of a deferred execution from its record in the ledger.
    #[must_use]
    pub const fn of(record: &Record, parked: Deferral) -> Self {
        Self { parked, stamp: record.stamp, fence: record.fence, spent: record.spent }
    }
}

/// Growing text that becomes the answer of an attempt if the attempt succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growing {
    /// Attempt that produces the text.
    pub stamp: AttemptId,
    /// Channel of the text.
    pub channel: TextChannel,
    /// First byte of the answer in that text. A later message superseded the text before this byte.
    pub from: u64,
}

/// Progress of an execution, as published to its waiters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// State of the execution.
    pub state: State,
    /// True if the agent has requested input and the ledger has not yet recorded the request.
    pub asks: bool,
    /// Number of open interactions that the ledger has recorded: the work waits for answers.
    pub interactions: u32,
    /// Position in the queue and its reason, while the execution waits to start.
    pub queued: Option<Queued>,
    /// Deferral of the execution; set once the ledger has recorded it, when the actor of the execution ends.
    pub parked: Option<Stay>,
    /// Outcome; set once the ledger has recorded it.
    pub outcome: Option<Outcome>,
    /// Counter that grows with every record of the execution in the ledger.
    pub news: u64,
    /// Raw text of the answer, if the owner may receive it.
    pub raw: Option<Raw>,
    /// Growing answer of the present attempt, if it can be shown.
    pub growing: Option<Growing>,
    /// Followers of the execution.
    pub followers: Followers,
}

impl Progress {
    /// Returns the progress of an accepted execution that has not started.
    #[must_use]
    pub fn accepted() -> Self {
        Self {
            state: State::Idle,
            asks: false,
            interactions: 0,
            queued: None,
            parked: None,
            outcome: None,
            news: 0,
            raw: None,
            growing: None,
            followers: Followers::default(),
        }
    }

    /// Returns true if the work has ended, or has stopped for a question, and the ledger has not yet recorded it.
    #[must_use]
    pub const fn is_ending(&self) -> bool {
        match self.state {
            State::Cleanup => self.outcome.is_none(),
            State::Waiting => false,
            _ => self.asks,
        }
    }

    /// Sets the queue position, or clears it. Returns true if the position changed.
    pub fn waits(&mut self, queued: Option<Queued>) -> bool {
        let is_new = self.queued != queued;
        self.queued = queued;
        is_new
    }

    /// Moves the start of the growing answer to this byte of a channel. Returns true if this is a change for followers.
    pub fn answer_begins_at(&mut self, channel: TextChannel, from: u64) -> bool {
        let growing = self.growing.as_mut().filter(|growing| growing.channel == channel);
        growing.is_some_and(|growing| std::mem::replace(&mut growing.from, from) != from)
    }

    /// Counts a new record in the ledger.
    pub const fn has_news(&mut self) {
        self.news += 1;
    }
}
