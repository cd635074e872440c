//! What this machine offers to hold programs with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::resources::Controllers;
use super::sandbox::Means;

/// Whether a means is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// It was not found.
    Absent,
    /// It is there, and not for us.
    Unusable,
    /// It works.
    Usable,
}

impl Presence {
    /// The published word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Unusable => "unusable",
            Self::Usable => "usable",
        }
    }
}

/// What the machine offers, as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rungs {
    /// The release of the kernel.
    pub kernel: String,
    /// Whether the processes of an attempt can be labelled.
    pub labels: bool,
    /// The version of Landlock; absent without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landlock: Option<u32>,
    /// Bubblewrap, with all that a program is wrapped in.
    pub bubblewrap: Presence,
    /// A control group of version 2 in which we could make others.
    pub cgroup: Presence,
    /// Which limits those would hold.
    #[serde(default)]
    pub controllers: Controllers,
    /// Whether everything runs as root.
    pub root: bool,
    /// Descriptors that a process may have: now, and if it asks.
    pub open_files: (u64, u64),
}

impl Rungs {
    /// What of it holds programs to their sandboxes.
    #[must_use]
    pub fn means(&self) -> Means {
        Means { landlock: self.landlock, bubblewrap: self.bubblewrap == Presence::Usable }
    }
}
