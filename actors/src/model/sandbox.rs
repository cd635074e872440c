//! What an agent may change and reach, and whether the system holds it to that.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agent::Access;

/// What the configuration asks of the system. Reading and executing are never refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// Whether the system is asked at all.
    pub enforce: bool,
    /// Whether the service refuses to start where the system cannot do all of it.
    pub required: bool,
    /// Absolute paths that may be changed beside the agent's own and temporary folders, and beside
    /// its working folder where it is read-write. A read-write agent without them may change
    /// everything.
    pub writable: Option<Vec<PathBuf>>,
    /// Whether it may use the network: TCP, and with bubblewrap everything else too.
    pub network: bool,
    /// By what means it is held; the best that is there where nothing is said.
    pub isolation: Option<Isolation>,
    /// Absolute paths of which it sees nothing: folders are empty, and so are files.
    pub hidden: Vec<PathBuf>,
    /// Paths that it may not change although it may change what is around them; relative ones
    /// stand below its working folder.
    pub protected: Vec<PathBuf>,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self {
            enforce: true,
            required: false,
            writable: None,
            network: true,
            isolation: None,
            hidden: Vec::new(),
            protected: Vec::new(),
        }
    }
}

/// A means to hold a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// The kernel takes rights from its processes.
    Landlock,
    /// It has mounts, processes and, if need be, a network of its own.
    Bubblewrap,
}

impl Isolation {
    /// The published word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::Bubblewrap => "bubblewrap",
        }
    }
}

/// What the machine offers to hold programs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Means {
    /// The version of Landlock that the kernel knows.
    pub landlock: Option<u32>,
    /// Whether bubblewrap works.
    pub bubblewrap: bool,
}

impl Sandbox {
    /// Whether an agent of this access may change only some of the files.
    #[must_use]
    pub const fn guards_files(&self, access: Access) -> bool {
        matches!(access, Access::ReadOnly) || self.writable.is_some()
    }

    /// Whether only bubblewrap can do all that is asked.
    #[must_use]
    pub fn needs_bubblewrap(&self) -> bool {
        let has_paths = !self.hidden.is_empty() || !self.protected.is_empty();
        has_paths || self.isolation == Some(Isolation::Bubblewrap)
    }

    /// Whether there is anything to be refused.
    #[must_use]
    pub fn refuses(&self, access: Access) -> bool {
        self.guards_files(access) || !self.network || self.needs_bubblewrap()
    }
}

/// Whether the system refuses what an agent may not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Enforcement {
    /// There is nothing to refuse.
    #[default]
    Unneeded,
    /// It refuses all of it.
    Enforced,
    /// It refuses some of it: an old kernel cannot tell the rest.
    Partial,
    /// The configuration does not want it.
    Off,
    /// It has no means.
    Unavailable,
}

impl Enforcement {
    /// The published word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unneeded => "unneeded",
            Self::Enforced => "enforced",
            Self::Partial => "partial",
            Self::Off => "off",
            Self::Unavailable => "unavailable",
        }
    }

    /// Whether an agent that may not do everything could.
    #[must_use]
    pub const fn is_wanting(self) -> bool {
        matches!(self, Self::Partial | Self::Off | Self::Unavailable)
    }
}
