//! What an execution that has not begun waits for.

use serde::{Deserialize, Serialize};

/// Why an execution waits. Published; words are only added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// All slots of its agent are held.
    AgentBusy,
    /// Another execution changes the folder that this one would change.
    WorkspaceBusy,
}

impl Reason {
    /// The published word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AgentBusy => "agent-busy",
            Self::WorkspaceBusy => "workspace-busy",
        }
    }
}
