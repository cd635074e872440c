//! The states of one execution, and the only moves between them.

use std::fmt;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use State::{Cancelled, Cleanup, Completed, Failed, Idle, Running, Starting, Timeout, Waiting};

/// The published name of where an execution is: `/status`, history, documents.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Accepted, perhaps queued; after the clean-up, at rest.
    Idle,
    /// Told to start.
    Starting,
    /// Its work goes on.
    Running,
    /// Asked for input; holds no process, slot or lease.
    Waiting,
    /// Ended well.
    Completed,
    /// Ended badly, or waits for a retry.
    Failed,
    /// Ended because its time was over.
    Timeout,
    /// Ended because somebody said so.
    Cancelled,
    /// What it left behind is removed.
    Cleanup,
}

/// Every move there is. No other place lists moves.
pub const MOVES: &[(State, State)] = &[
    (Idle, Starting),
    (Idle, Cancelled),
    (Idle, Failed), // Waited too long in the queue, or was interrupted before it ran.
    (Starting, Running),
    (Starting, Failed),
    (Starting, Cancelled),
    (Starting, Timeout),
    (Running, Completed),
    (Running, Failed),
    (Running, Timeout),
    (Running, Cancelled),
    (Running, Waiting),
    (Waiting, Starting), // The next turn.
    (Waiting, Cancelled),
    (Waiting, Timeout),
    (Waiting, Failed),
    (Failed, Starting),  // A retry.
    (Failed, Cancelled), // Called off between two attempts.
    (Completed, Cleanup),
    (Failed, Cleanup),
    (Timeout, Cleanup),
    (Cancelled, Cleanup),
    (Cleanup, Idle),
];

impl State {
    /// Every state.
    pub const ALL: &[Self] =
        &[Idle, Starting, Running, Waiting, Completed, Failed, Timeout, Cancelled, Cleanup];

    /// Whether the table of moves has this one.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        MOVES.contains(&(self, next))
    }

    /// The published word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Idle => "idle",
            Starting => "starting",
            Running => "running",
            Waiting => "waiting",
            Completed => "completed",
            Failed => "failed",
            Timeout => "timeout",
            Cancelled => "cancelled",
            Cleanup => "cleanup",
        }
    }

    /// Reads the published word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|state| state.as_str() == word)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How an execution ended. Four values, and no way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It answered.
    Completed,
    /// It did not, for the reason in its failure.
    Failed,
    /// Its time was over.
    Timeout,
    /// It was called off.
    Cancelled,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: &[Self] = &[Self::Completed, Self::Failed, Self::Timeout, Self::Cancelled];

    /// The state in which it is reached.
    #[must_use]
    pub const fn state(self) -> State {
        match self {
            Self::Completed => Completed,
            Self::Failed => Failed,
            Self::Timeout => Timeout,
            Self::Cancelled => Cancelled,
        }
    }

    /// The published word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.state().as_str()
    }

    /// Reads the published word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|outcome| outcome.state().as_str() == word)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state().fmt(f)
    }
}

/// To which try of which turn a report belongs. A report with another stamp changes nothing.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Stamp {
    /// The prompt it answers, from 1.
    pub turn: u32,
    /// The try at that prompt, from 1.
    pub attempt: u32,
}

impl Stamp {
    /// The first try of the first turn.
    pub const FIRST: Self = Self { turn: 1, attempt: 1 };

    /// The next try of the same turn.
    #[must_use]
    pub const fn retried(self) -> Self {
        Self { turn: self.turn, attempt: self.attempt + 1 }
    }

    /// The first try of the next turn.
    #[must_use]
    pub const fn continued(self) -> Self {
        Self { turn: self.turn + 1, attempt: 1 }
    }
}

/// The generation of a claim. What carries an old one changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fence(pub i64);

/// One move that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Move {
    /// The state before.
    pub from: State,
    /// The state after.
    pub to: State,
    /// The attempt in which it was made.
    pub stamp: Stamp,
    /// When.
    pub at: DateTime<Utc>,
    /// Why, as a short clause.
    pub reason: String,
}
