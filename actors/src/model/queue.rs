//! What an execution waits for before it begins, and how many go before it.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why an execution waits. Published; words are only added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "QueueReason")]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// All slots of its agent are held.
    AgentBusy,
    /// Another execution changes the folder that this one would change.
    WorkspaceBusy,
    /// An equal request is worked on, whose result it may take.
    EqualRequest,
    /// The account of its agent has used up what it may.
    QuotaUsedUp,
    /// The credential of its agent was not accepted.
    CredentialRefused,
    /// An earlier message of its conversation is at work, or is to be.
    ConversationBusy,
    /// Others take the memory that it needs.
    MemoryShort,
}

impl Reason {
    /// The published word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AgentBusy => "agent-busy",
            Self::WorkspaceBusy => "workspace-busy",
            Self::EqualRequest => "equal-request",
            Self::QuotaUsedUp => "quota-used-up",
            Self::CredentialRefused => "credential-refused",
            Self::ConversationBusy => "conversation-busy",
            Self::MemoryShort => "memory-short",
        }
    }

    /// The reason in words. It names nobody and no folder.
    const fn clause(self) -> &'static str {
        match self {
            Self::AgentBusy => "the agent is busy",
            Self::WorkspaceBusy => "the workspace is in use by another agent",
            Self::EqualRequest => "an equal request is worked on",
            Self::QuotaUsedUp => "the quota of the agent's account is used up",
            Self::CredentialRefused => "the agent's credential was not accepted",
            Self::ConversationBusy => "an earlier message of the conversation is worked on",
            Self::MemoryShort => "other agents take the memory that it needs",
        }
    }
}

/// The place of an execution that waits, at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Queued {
    /// Its place, from 1: in the line of its agent, or among those who wait for the workspace.
    pub position: usize,
    /// Why it waits.
    pub reason: Reason,
    /// Before then it does not go on, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
}

impl Queued {
    /// A place, until nobody knows when.
    #[must_use]
    pub const fn new(position: usize, reason: Reason) -> Self {
        Self { position, reason, until: None }
    }
}

impl fmt::Display for Queued {
    /// One clause, such as `waiting: 3rd in line, the agent is busy`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { position, reason, until } = self;
        write!(f, "waiting: {position}{} in line, {}", ending(*position), reason.clause())?;
        match until {
            None => Ok(()),
            Some(until) => write!(f, " until {}", until.to_rfc3339_opts(SecondsFormat::Secs, true)),
        }
    }
}

/// What makes an ordinal of a number.
const fn ending(number: usize) -> &'static str {
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
    fn a_place_is_told_in_words() {
        for (position, ordinal) in [
            (1, "1st"),
            (2, "2nd"),
            (3, "3rd"),
            (4, "4th"),
            (11, "11th"),
            (112, "112th"),
            (1021, "1021st"),
        ] {
            let told = Queued::new(position, Reason::AgentBusy).to_string();
            assert_eq!(told, format!("waiting: {ordinal} in line, the agent is busy"));
        }
    }

    #[test]
    fn the_end_of_a_wait_is_told_where_it_is_known() {
        let until = DateTime::from_timestamp(1_800_000_000, 0);
        let queued = Queued { until, ..Queued::new(1, Reason::QuotaUsedUp) };
        let told = "waiting: 1st in line, the quota of the agent's account is used up \
                    until 2027-01-15T08:00:00Z";
        assert_eq!(queued.to_string(), told);
    }

    #[test]
    fn the_published_words_are_the_stored_ones() {
        for reason in [
            Reason::AgentBusy,
            Reason::WorkspaceBusy,
            Reason::EqualRequest,
            Reason::QuotaUsedUp,
            Reason::CredentialRefused,
            Reason::ConversationBusy,
            Reason::MemoryShort,
        ] {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
    }
}
