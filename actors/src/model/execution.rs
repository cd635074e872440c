//! States of an execution, and the only transitions between them.

pub mod content;
pub mod event;
pub mod followers;
pub mod hop;
pub mod message_details;
pub mod progress;
pub mod record;
pub mod request;
pub mod step;
pub mod text_range;
pub mod trace;
pub mod usage;

use std::fmt;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::id::AttemptId;

use ExecutionState::{
    Cancelled, Cleanup, Completed, Failed, Idle, Running, Starting, Timeout, Waiting,
};

/// State of an execution, as published in `/status`, in the history and in documents.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "State")]
pub enum ExecutionState {
    /// Accepted and possibly queued; also the final state after the clean-up.
    Idle,
    /// The start was requested.
    Starting,
    /// The program works.
    Running,
    /// The execution waits for input; it holds no process, slot or lease.
    Waiting,
    /// The execution succeeded.
    Completed,
    /// The execution failed, or waits for a retry.
    Failed,
    /// The execution exceeded a deadline.
    Timeout,
    /// The execution was cancelled.
    Cancelled,
    /// The execution's leftovers are being removed.
    Cleanup,
}

/// Every transition. No other place lists transitions.
pub const TRANSITIONS: &[(ExecutionState, ExecutionState)] = &[
    (Idle, Starting),
    (Idle, Cancelled),
    (Idle, Failed), // The queue timeout expired, or the service stopped before the start.
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
    (Failed, Cancelled), // Cancelled between two attempts.
    (Completed, Cleanup),
    (Failed, Cleanup),
    (Timeout, Cleanup),
    (Cancelled, Cleanup),
    (Cleanup, Idle),
];

impl ExecutionState {
    /// Every state.
    pub const ALL: &[Self] =
        &[Idle, Starting, Running, Waiting, Completed, Failed, Timeout, Cancelled, Cleanup];

    /// Returns true if an attempt is in progress.
    #[must_use]
    pub const fn is_at_work(self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }

    /// Returns true if the table of transitions contains this one.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        TRANSITIONS.contains(&(self, next))
    }

    /// Returns the published name.
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

    /// Parses the published name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|state| state.as_str() == word)
    }
}

impl fmt::Display for ExecutionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Outcome of an execution. An outcome is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The execution answered.
    Completed,
    /// The execution failed; its failure states the reason.
    Failed,
    /// The execution exceeded a deadline.
    Timeout,
    /// The execution was cancelled.
    Cancelled,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: &[Self] = &[Self::Completed, Self::Failed, Self::Timeout, Self::Cancelled];

    /// Returns the state that corresponds to the outcome.
    #[must_use]
    pub const fn state(self) -> ExecutionState {
        match self {
            Self::Completed => Completed,
            Self::Failed => Failed,
            Self::Timeout => Timeout,
            Self::Cancelled => Cancelled,
        }
    }

    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.state().as_str()
    }

    /// Parses the published name.
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

/// Generation of a claim (fencing token). A write with an outdated generation has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fence(pub i64);

/// Reason why an execution waits for its caller: the interrupted states of A2A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Interruption {
    /// The agent needs further input.
    InputRequired,
    /// The agent needs the caller to authenticate somewhere, or to authorize something.
    AuthRequired,
}

impl Interruption {
    /// Every reason.
    pub const ALL: &[Self] = &[Self::InputRequired, Self::AuthRequired];

    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InputRequired => "input-required",
            Self::AuthRequired => "auth-required",
        }
    }

    /// Parses the published name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.as_str() == word)
    }
}

/// State transition of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateChange {
    /// Previous state.
    pub from: ExecutionState,
    /// New state.
    pub to: ExecutionState,
    /// Attempt during which the transition happened.
    pub attempt_id: AttemptId,
    /// Time of the transition.
    pub at: DateTime<Utc>,
    /// Reason as a short clause.
    pub reason: String,
    /// Reason for the wait, on a transition to `waiting` only. Absent in events of earlier releases, which knew
    /// `input-required` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruption: Option<Interruption>,
}

impl StateChange {
    /// Creates a transition without an interruption.
    #[must_use]
    pub const fn new(
        (from, to): (ExecutionState, ExecutionState),
        attempt_id: AttemptId,
        at: DateTime<Utc>,
        reason: String,
    ) -> Self {
        Self { from, to, attempt_id, at, reason, interruption: None }
    }

    /// Creates the transition from running to waiting for the caller.
    #[must_use]
    pub fn waiting_for(
        attempt_id: AttemptId,
        at: DateTime<Utc>,
        interruption: Interruption,
    ) -> Self {
        let reason = match interruption {
            Interruption::InputRequired => "it asked for input",
            Interruption::AuthRequired => "it needs its caller to authenticate",
        };
        let interruption = Some(interruption);
        Self { from: Running, to: Waiting, attempt_id, at, reason: reason.to_owned(), interruption }
    }
}
