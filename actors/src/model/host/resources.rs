//! Resource limits of an attempt or a call of a tool, and of all its processes, and the enforcer of each limit.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Configured resource limits of each attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResourceLimits {
    /// Memory limit for all processes together, in bytes.
    pub max_memory_bytes: Option<u64>,
    /// Limit of processes and threads, as counted by the system.
    pub max_processes: Option<u64>,
    /// Use of a control group for each attempt.
    pub cgroup_mode: CgroupMode,
}

impl ResourceLimits {
    /// Returns true if any limit is set.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        self.max_memory_bytes.is_some() || self.max_processes.is_some()
    }

    /// Returns true if an attempt should have a control group where one can be created.
    #[must_use]
    pub const fn needs_cgroup(&self) -> bool {
        match self.cgroup_mode {
            CgroupMode::Auto => self.is_limited(),
            CgroupMode::Required => true,
            CgroupMode::Off => false,
        }
    }
}

/// Use of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CgroupMode {
    /// A control group is used if it can be created and a limit is set.
    #[default]
    Auto,
    /// The service refuses to start if no control group can enforce the limits.
    Required,
    /// No control group is used.
    Off,
}

/// Resource usage of all processes of an attempt at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessTreeUsage {
    /// Bytes of resident memory. Memory that several processes share counts for each.
    pub memory_bytes: u64,
    /// Number of processes and threads.
    pub processes: u64,
}

/// Controllers that a control group provides on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Controllers {
    /// True if the memory controller is available.
    pub memory: bool,
    /// True if the process controller is available.
    pub pids: bool,
}

/// Numbers of events in which a limit of a control group took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CgroupLimitEvents {
    /// Number of processes that were killed because memory was exhausted.
    pub oom_kills: u64,
    /// Number of processes and threads that were not started.
    pub failed_forks: u64,
}

/// Enforcer of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitEnforcer {
    /// The service, which measures about every second.
    Watch,
    /// The kernel, through a control group, at every moment.
    Group,
}

impl LimitEnforcer {
    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Watch => "watch",
            Self::Group => "group",
        }
    }
}

/// Limit that is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ResourceLimit")]
pub struct EnforcedLimit {
    /// Upper limit of the value.
    pub limit: u64,
    /// Enforcer of the limit.
    pub enforcer: LimitEnforcer,
}

/// Limits that are in force for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitEnforcement {
    /// Memory limit in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<EnforcedLimit>,
    /// Limit of processes and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<EnforcedLimit>,
    /// True if each attempt has a control group, which terminates all its processes at once.
    #[serde(default)]
    pub control_group: bool,
}

impl LimitEnforcement {
    /// Returns true if there is no limit and no control group.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for LimitEnforcement {
    /// Writes the limits and their enforcers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = self.memory_bytes.map(|limit| ("bytes of memory", limit));
        let processes = self.processes.map(|limit| ("processes and threads", limit));
        for (unit, EnforcedLimit { limit, enforcer }) in memory.into_iter().chain(processes) {
            write!(f, "at most {limit} {unit} (held by the {}), ", enforcer.as_str())?;
        }
        f.write_str(if self.control_group { "in a control group" } else { "in no control group" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_enforcement_is_described_in_words() {
        let limit = |enforcer| Some(EnforcedLimit { limit: 10, enforcer });
        let (memory_bytes, processes) = (limit(LimitEnforcer::Watch), limit(LimitEnforcer::Group));
        let enforcement = LimitEnforcement { memory_bytes, processes, control_group: true };
        let words = "at most 10 bytes of memory (held by the watch), at most 10 processes and \
                     threads (held by the group), in a control group";
        assert_eq!(enforcement.to_string(), words);
        assert_eq!(LimitEnforcement::default().to_string(), "in no control group");
    }
}
