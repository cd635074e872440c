//! Reasons why an execution waits before it starts, and its position in the queue.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reason why an execution waits. Published; values are only added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "QueueReason")]
#[serde(rename_all = "kebab-case")]
pub enum QueueReason {
    /// All slots of the agent are in use.
    AgentBusy,
    /// Another execution modifies the folder that this execution would modify.
    WorkspaceBusy,
    /// An equal request is in progress, whose result this execution may take.
    DuplicateInProgress,
    /// The quota of the agent's account is exhausted.
    QuotaExhausted,
    /// The agent's credential was rejected.
    CredentialRefused,
    /// The provider of the agent limits the rate of requests.
    RateLimited,
    /// The provider of the agent is overloaded.
    Overloaded,
    /// An earlier message of the conversation is in progress or queued.
    ConversationBusy,
    /// Other executions use the memory that this execution needs.
    InsufficientMemory,
    /// The program of the agent is not installed.
    ProgramMissing,
}

impl QueueReason {
    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AgentBusy => "agent-busy",
            Self::WorkspaceBusy => "workspace-busy",
            Self::DuplicateInProgress => "duplicate-in-progress",
            Self::QuotaExhausted => "quota-exhausted",
            Self::CredentialRefused => "credential-refused",
            Self::RateLimited => "rate-limited",
            Self::Overloaded => "overloaded",
            Self::ConversationBusy => "conversation-busy",
            Self::InsufficientMemory => "insufficient-memory",
            Self::ProgramMissing => "program-missing",
        }
    }

    /// Returns the reason as a clause. The clause contains no name and no path.
    const fn clause(self) -> &'static str {
        match self {
            Self::AgentBusy => "the agent is busy",
            Self::WorkspaceBusy => "the workspace is in use by another agent",
            Self::DuplicateInProgress => "an equal request is worked on",
            Self::QuotaExhausted => "the quota of the agent's account is used up",
            Self::CredentialRefused => "the agent's credential was not accepted",
            Self::RateLimited => "the provider of the agent's model limits the rate of requests",
            Self::Overloaded => "the provider of the agent's model is overloaded",
            Self::ConversationBusy => "an earlier message of the conversation is worked on",
            Self::InsufficientMemory => "other agents take the memory that it needs",
            Self::ProgramMissing => "the agent's program is not installed",
        }
    }
}

/// Position of a waiting execution, at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Queued {
    /// Position from 1: in the queue of the agent, or among the executions that wait for the workspace.
    pub position: usize,
    /// Reason for the wait.
    pub reason: QueueReason,
    /// Earliest time at which the execution may continue, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
}

impl Queued {
    /// Creates a position without an end time.
    #[must_use]
    pub const fn new(position: usize, reason: QueueReason) -> Self {
        Self { position, reason, until: None }
    }
}

impl fmt::Display for Queued {
    /// Writes one clause, such as `waiting: 3rd in line, the agent is busy`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { position, reason, until } = self;
        write!(f, "waiting: {position}{} in line, {}", ordinal_suffix(*position), reason.clause())?;
        match until {
            None => Ok(()),
            Some(until) => write!(f, " until {}", until.to_rfc3339_opts(SecondsFormat::Secs, true)),
        }
    }
}

/// Returns the ordinal suffix of a number.
const fn ordinal_suffix(number: usize) -> &'static str {
    match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_position_is_described_in_words() {
        for (position, ordinal) in [
            (1, "1st"),
            (2, "2nd"),
            (3, "3rd"),
            (4, "4th"),
            (11, "11th"),
            (112, "112th"),
            (1021, "1021st"),
        ] {
            let text = Queued::new(position, QueueReason::AgentBusy).to_string();
            assert_eq!(text, format!("waiting: {ordinal} in line, the agent is busy"));
        }
    }

    #[test]
    fn a_queue_position_states_the_known_end_of_the_wait() {
        let until = DateTime::from_timestamp(1_800_000_000, 0);
        let queued = Queued { until, ..Queued::new(1, QueueReason::QuotaExhausted) };
        let text = "waiting: 1st in line, the quota of the agent's account is used up \
                    until 2027-01-15T08:00:00Z";
        assert_eq!(queued.to_string(), text);
    }

    #[test]
    fn published_queue_reasons_equal_the_stored_ones() {
        for reason in [
            QueueReason::AgentBusy,
            QueueReason::WorkspaceBusy,
            QueueReason::DuplicateInProgress,
            QueueReason::QuotaExhausted,
            QueueReason::CredentialRefused,
            QueueReason::RateLimited,
            QueueReason::Overloaded,
            QueueReason::ConversationBusy,
            QueueReason::InsufficientMemory,
            QueueReason::ProgramMissing,
        ] {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
    }
}
