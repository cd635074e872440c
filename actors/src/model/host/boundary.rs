//! Boundary between the processes of an agent and the service that runs them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Mechanism that keeps an agent away from the service, best first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum BoundaryLevel {
    /// The agent runs as a user of its own.
    OwnUser,
    /// The agent runs in a mount namespace in which the service's files are hidden (bubblewrap).
    MountNamespace,
    /// The agent runs in a Landlock domain whose read allow-list leaves out the service's files.
    Landlock,
    /// The agent runs as the service's user, and can read and change the service's files.
    #[default]
    None,
}

impl BoundaryLevel {
    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OwnUser => "own-user",
            Self::MountNamespace => "mount-namespace",
            Self::Landlock => "landlock",
            Self::None => "none",
        }
    }
}

/// Gap of the boundary: something of the service that an agent can reach although it should not.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum BoundaryGap {
    /// The token, the keys, the ledger and the secret files of the service can be read.
    ServiceFiles,
    /// The configuration, or another file that the service trusts, can be changed.
    Configuration,
    /// Files can be added to the folder of the configuration, such as a preset or the variables of its unit.
    ConfigurationFolder,
    /// Programs and start-up files of the agent's user, which that user runs later, can be changed. Every agent that
    /// may change everything has this gap.
    UserFiles,
    /// The environment and the memory of other processes of the same user can be read.
    Processes,
    /// Other processes of the same user, the service included, can be signalled.
    Signals,
    /// A socket can be reached through which a program can be started outside of the sandbox, such as
    /// that of the user's service manager or of a container engine.
    Sockets,
    /// Another agent runs as the same user. This agent can read and change the home and the execution folders of the
    /// other agent, and signal its processes. With Landlock before version 6 and restricted files, it can only signal
    /// the processes.
    OtherAgents,
}

impl BoundaryGap {
    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ServiceFiles => "service-files",
            Self::Configuration => "configuration",
            Self::ConfigurationFolder => "configuration-folder",
            Self::UserFiles => "user-files",
            Self::Processes => "processes",
            Self::Signals => "signals",
            Self::Sockets => "sockets",
            Self::OtherAgents => "other-agents",
        }
    }

    /// Completes the sentence "the agent can ...".
    #[must_use]
    pub const fn ability(self) -> &'static str {
        match self {
            Self::ServiceFiles => "read the service's token, keys and ledger",
            Self::Configuration => "change the service's configuration",
            Self::ConfigurationFolder => "add files beside the service's configuration",
            Self::UserFiles => "change programs and start-up files of the service's user",
            Self::Processes => "read the environment of other processes",
            Self::Signals => "kill the service and other processes",
            Self::Sockets => "start programs outside of its sandbox through a socket",
            Self::OtherAgents => {
                "reach the files or processes of other agents that run as its user"
            }
        }
    }
}

/// Boundary between one agent and the service on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Boundary {
    /// Mechanism that is in force.
    pub level: BoundaryLevel,
    /// Gaps of the boundary, in a fixed order; empty if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<BoundaryGap>,
}

impl Boundary {
    /// Returns true if the agent could become the operator: it can read the service's secrets, or change files that the
    /// service trusts.
    #[must_use]
    pub fn allows_privilege_escalation(&self) -> bool {
        let allows_escalation = |gap: &BoundaryGap| {
            matches!(
                gap,
                BoundaryGap::ServiceFiles
                    | BoundaryGap::Configuration
                    | BoundaryGap::ConfigurationFolder
            )
        };
        self.gaps.iter().any(allows_escalation)
    }

    /// Returns a sentence about the gaps of `subject`, such as "the agent", or `None` if there are no gaps.
    #[must_use]
    pub fn describe_gaps(&self, subject: &str) -> Option<String> {
        let abilities: Vec<_> = self.gaps.iter().map(|gap| gap.ability()).collect();
        (!abilities.is_empty()).then(|| format!("{subject} can {}", abilities.join(", ")))
    }
}

impl std::fmt::Display for Boundary {
    /// Writes the level, and the gaps in brackets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.level.as_str())?;
        if self.gaps.is_empty() {
            return Ok(());
        }
        let gaps: Vec<_> = self.gaps.iter().map(|gap| gap.as_str()).collect();
        write!(f, " (open: {})", gaps.join(", "))
    }
}
