//! What is told to whoever counts, traces and raises alarms: ids, words and numbers, never text.

use chrono::{DateTime, Utc};

use super::alert::{Alert, Turn};
use super::code::Code;
use super::execution::{Outcome, Stamp};
use super::id::{AgentId, ContextId, ExecutionId};
use super::trace::Trace;

/// Something that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// An attempt has ended.
    Attempted(Attempted),
    /// An execution has its outcome.
    Ended(Ended),
    /// An alert has begun or is over.
    Alerted(Turn, Alert),
}

/// Of which execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Its id.
    pub execution: ExecutionId,
    /// Its agent.
    pub agent: AgentId,
    /// The conversation.
    pub context: ContextId,
    /// Where in a trace it was asked.
    pub asked: Option<Trace>,
}

/// An attempt that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempted {
    /// Whose.
    pub of: Subject,
    /// Which.
    pub stamp: Stamp,
    /// When it was begun, or taken up again.
    pub begun: DateTime<Utc>,
    /// When it ended.
    pub at: DateTime<Utc>,
    /// Why it did not work.
    pub code: Option<Code>,
    /// The exit code of its program, where there was one.
    pub exit_code: Option<i32>,
}

/// An execution that has its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Which.
    pub of: Subject,
    /// Its latest attempt.
    pub stamp: Stamp,
    /// When it was accepted.
    pub accepted: DateTime<Utc>,
    /// When it ended.
    pub at: DateTime<Utc>,
    /// How.
    pub outcome: Outcome,
    /// Why it did not work.
    pub code: Option<Code>,
    /// What its agent said that it used, in this life of the service.
    pub tokens: Tokens,
}

/// Tokens of language models, as agents count them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Of what models were given.
    pub input: u64,
    /// Of what they answered.
    pub output: u64,
}

impl Tokens {
    /// These and others.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        let input = self.input.saturating_add(other.input);
        Self { input, output: self.output.saturating_add(other.output) }
    }
}
