//! How much of the machine an agent may take, with all that it starts, and what holds it to that.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the configuration asks for, of each attempt by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resources {
    /// Bytes of memory of all its processes together.
    pub memory: Option<u64>,
    /// Processes with their threads, as the system counts them.
    pub processes: Option<u64>,
    /// Whether each attempt is to have a control group of its own.
    pub grouping: Grouping,
}

impl Resources {
    /// Whether anything is limited.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        self.memory.is_some() || self.processes.is_some()
    }

    /// Whether an attempt is to have a group where there can be one.
    #[must_use]
    pub const fn wants_group(&self) -> bool {
        match self.grouping {
            Grouping::Auto => self.is_limited(),
            Grouping::Required => true,
            Grouping::Off => false,
        }
    }
}

/// Whether a control group is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Grouping {
    /// Where there can be one and something is limited.
    #[default]
    Auto,
    /// The service refuses to start where there can be none that holds what is limited.
    Required,
    /// Never.
    Off,
}

/// What all processes of an attempt take at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Footprint {
    /// Bytes of resident memory. What several of them share counts for each.
    pub memory: u64,
    /// Processes with their threads.
    pub processes: u64,
}

/// Which limits a control group holds here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Controllers {
    /// That of memory.
    pub memory: bool,
    /// That of processes.
    pub pids: bool,
}

/// What a control group has refused so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Refusals {
    /// Processes that were killed since there was no more memory for them.
    pub killed: u64,
    /// Processes and threads that were not started.
    pub unstarted: u64,
}

/// Who holds an agent to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Holder {
    /// The service, which looks about every second.
    Watch,
    /// The kernel, by a control group, at any moment.
    Group,
}

impl Holder {
    /// The published word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Watch => "watch",
            Self::Group => "group",
        }
    }
}

/// A limit that is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ResourceLimit")]
pub struct Limit {
    /// So much, and no more.
    pub most: u64,
    /// Who holds the agent to it.
    pub held_by: Holder,
}

/// All that is in force for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Holding {
    /// Bytes of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<Limit>,
    /// Processes with their threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<Limit>,
    /// Whether each attempt has a control group, which ends all of it at once.
    #[serde(default)]
    pub group: bool,
}

impl Holding {
    /// Whether nothing is limited and nothing is grouped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Holding {
    /// What is limited, and who holds the agent to that.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = self.memory_bytes.map(|limit| ("bytes of memory", limit));
        let processes = self.processes.map(|limit| ("processes and threads", limit));
        for (what, Limit { most, held_by }) in memory.into_iter().chain(processes) {
            write!(f, "at most {most} {what} (held by the {}), ", held_by.as_str())?;
        }
        f.write_str(if self.group { "in a control group" } else { "in no control group" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_an_agent_is_told_in_words() {
        let limit = |held_by| Some(Limit { most: 10, held_by });
        let (memory_bytes, processes) = (limit(Holder::Watch), limit(Holder::Group));
        let holding = Holding { memory_bytes, processes, group: true };
        let words = "at most 10 bytes of memory (held by the watch), at most 10 processes and \
                     threads (held by the group), in a control group";
        assert_eq!(holding.to_string(), words);
        assert_eq!(Holding::default().to_string(), "in no control group");
    }
}
