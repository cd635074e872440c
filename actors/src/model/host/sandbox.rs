//! Sandbox of an agent: the files and networks that it may use, and the enforcement by the system.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::boundary::Boundary;
use crate::model::access::Access;

/// Configured sandbox. Reading and executing are always allowed, except for hidden paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// True if the system enforces the sandbox.
    pub is_enforced: bool,
    /// True if the program has its own sandbox, which the sandbox of an agent would break: the service then only
    /// protects its own files and processes from the program.
    pub has_inner_sandbox: bool,
    /// Requirements for the start of the agent: the isolation that the system must provide.
    pub isolation_requirement: IsolationRequirement,
    /// Absolute paths that the agent may modify beside its own and temporary folders, and beside its working folder if
    /// the agent is read-write. A read-write agent without this list may modify everything.
    pub writable: Option<Vec<PathBuf>>,
    /// True if the agent may use the network. Otherwise it gets no socket except Unix sockets and the list of
    /// network devices; in bubblewrap it has an empty network.
    pub allows_network: bool,
    /// Use of the machine's shared memory. In bubblewrap the agent always has a shared memory of its own.
    pub shared_memory: SharedMemoryAccess,
    /// Mechanism that enforces the sandbox; by default the best available one.
    pub isolation: Option<Isolation>,
    /// Absolute paths that are hidden from the agent: folders and files appear empty.
    pub hidden: Vec<PathBuf>,
    /// Paths that the agent may not modify although it may modify their surroundings; relative paths start at the
    /// working folder.
    pub protected: Vec<PathBuf>,
    /// Sockets of other programs that stay reachable, although a program could be started outside of the
    /// sandbox through them.
    pub allowed_sockets: Vec<PathBuf>,
    /// Folders of the agent without links; absent until the service has resolved them.
    pub canonical_paths: Option<CanonicalSandboxPaths>,
}

/// Folders that an agent may change, as paths without links. The service resolves them once, so that a link
/// that an agent puts in their place later leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CanonicalSandboxPaths {
    /// Resolved paths of [`Sandbox::writable`]. A path with a link to the service's own files stays unresolved, and the
    /// start of a program rejects it.
    pub writable: Vec<PathBuf>,
    /// Working folder, and the folders below which callers may choose one.
    pub working_dirs: Vec<PathBuf>,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self {
            is_enforced: true,
            has_inner_sandbox: false,
            isolation_requirement: IsolationRequirement::Nothing,
            writable: None,
            allows_network: true,
            shared_memory: SharedMemoryAccess::Allowed,
            isolation: None,
            hidden: Vec::new(),
            protected: Vec::new(),
            allowed_sockets: Vec::new(),
            canonical_paths: None,
        }
    }
}

/// Use of the machine's shared memory by an agent that may change only some files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedMemoryAccess {
    /// The agent may create, change and remove semaphores and shared memory.
    Allowed,
    /// The agent may only read it.
    Refused,
}

/// Least isolation with which an agent is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IsolationRequirement {
    /// The agent is started with the isolation that the system provides.
    #[default]
    Nothing,
    /// The sandbox must be enforced in full. A sandbox with restrictions beyond those of the access type
    /// implies this requirement.
    Sandbox,
    /// The sandbox must be enforced in full, and the agent must not reach the service's files.
    SandboxAndServiceFiles,
}

/// Mechanism that confines a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// The kernel takes rights away from the processes (Landlock).
    Landlock,
    /// The program has its own mounts, processes and, if required, network (bubblewrap).
    Bubblewrap,
}

impl Isolation {
    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::Bubblewrap => "bubblewrap",
        }
    }
}

/// Capabilities of the machine for the confinement of programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SandboxCapabilities {
    /// Version of Landlock that the kernel supports.
    pub landlock: Option<u32>,
    /// True if bubblewrap works.
    pub bubblewrap: bool,
}

impl Sandbox {
    /// Returns true if the service lets an agent of this access type modify only some of the files.
    #[must_use]
    pub const fn restricts_writes(&self, access: Access) -> bool {
        !self.has_inner_sandbox && (matches!(access, Access::ReadOnly) || self.writable.is_some())
    }

    /// Returns true if only bubblewrap can enforce the whole sandbox.
    #[must_use]
    pub fn needs_bubblewrap(&self) -> bool {
        let has_paths = !self.hidden.is_empty() || !self.protected.is_empty();
        has_paths || self.isolation == Some(Isolation::Bubblewrap)
    }

    /// Returns true if the sandbox restricts anything.
    #[must_use]
    pub fn has_restrictions(&self, access: Access) -> bool {
        self.restricts_writes(access) || !self.allows_network || self.needs_bubblewrap()
    }
}

/// Degree to which the system enforces the sandbox of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Enforcement {
    /// The sandbox restricts nothing.
    #[default]
    Unneeded,
    /// The system enforces the whole sandbox.
    Enforced,
    /// The system enforces a part of the sandbox: an old kernel lacks the rest.
    Partial,
    /// The configuration disables enforcement.
    Off,
    /// The system has no mechanism.
    Unavailable,
}

impl Enforcement {
    /// Returns the published name.
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

    /// Returns true if the sandbox has restrictions that are not fully enforced.
    #[must_use]
    pub const fn is_incomplete(self) -> bool {
        matches!(self, Self::Partial | Self::Off | Self::Unavailable)
    }
}

/// Confinement of the processes of an agent: the mechanism, and what it achieves.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Confinement {
    /// Degree to which the system enforces the sandbox.
    pub enforcement: Enforcement,
    /// Mechanism that enforces the sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Boundary between the agent's processes and the service.
    #[serde(default)]
    pub boundary: Boundary,
}

/// Confinement of a backend program on this machine, for the status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackendConfinement {
    /// Path of the section of the program in the configuration, such as `tools.search`.
    pub section: String,
    /// Confinement of its processes.
    #[serde(flatten)]
    pub confinement: Confinement,
}

impl std::fmt::Display for BackendConfinement {
    /// Writes the section and the boundary.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: boundary {}", self.section, self.confinement.boundary)
    }
}
