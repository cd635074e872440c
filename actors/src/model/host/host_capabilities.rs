//! Capabilities of this machine for the confinement of programs.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::resources::Controllers;
use super::sandbox::SandboxCapabilities;

/// Availability of a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CapabilityState {
    /// The capability was not found.
    Absent,
    /// The capability exists, and the service may not use it.
    Unusable,
    /// The capability is usable.
    Usable,
}

impl CapabilityState {
    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Unusable => "unusable",
            Self::Usable => "usable",
        }
    }
}

/// Confinement capabilities of the machine at the time of the check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostCapabilities {
    /// Release of the kernel.
    pub kernel: String,
    /// True if the processes of an attempt can be labelled.
    pub labels: bool,
    /// Version of Landlock; absent if the kernel has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landlock: Option<u32>,
    /// Availability of bubblewrap with everything that the service uses of it.
    pub bubblewrap: CapabilityState,
    /// Availability of a version 2 control group in which the service can create groups.
    pub cgroup: CapabilityState,
    /// Controllers that such groups would provide.
    #[serde(default)]
    pub controllers: Controllers,
    /// True if the service runs as root.
    pub root: bool,
    /// True if the service may start programs as other users.
    #[serde(default)]
    pub users: bool,
    /// Sockets that are reachable on this machine, and through which a program can be started outside of a sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty", serialize_with = "write_paths")]
    pub sockets: Vec<PathBuf>,
    /// Limits of open file descriptors of a process: the present limit, and the highest that a process can request.
    pub open_files: (u64, u64),
}

/// Writes paths as text. A path comes from the environment, so it may be no text.
fn write_paths<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}

impl HostCapabilities {
    /// Returns the capabilities that enforce sandboxes.
    #[must_use]
    pub fn sandbox_capabilities(&self) -> SandboxCapabilities {
        SandboxCapabilities {
            landlock: self.landlock,
            bubblewrap: self.bubblewrap == CapabilityState::Usable,
        }
    }
}
