//! Program that serves agents and is no agent itself, in a sandbox and an environment of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::EnvVariable;
use crate::model::access::Access;
use crate::model::host::resources::ResourceLimits;
use crate::model::host::sandbox::{Confinement, Sandbox};

/// Program that serves agents and is no agent itself: that of a tool or of an MCP server.
#[derive(Debug, Clone, PartialEq)]
pub struct BackendProgram {
    /// Absolute path of the executable.
    pub command: PathBuf,
    /// Environment variables besides the allow-list.
    pub env: BTreeMap<String, EnvVariable>,
    /// Absolute path of the working folder; `None` for an empty folder of the process.
    pub working_dir: Option<PathBuf>,
    /// Home of the program.
    pub home: PathBuf,
    /// Sandbox of the program.
    pub sandbox: Sandbox,
    /// Resource limits of each process, for the program with all that it starts.
    pub resource_limits: ResourceLimits,
    /// Confinement on this machine, decided when the service starts.
    pub confinement: Confinement,
}

impl BackendProgram {
    /// Access of all backend programs: they change only the folders that their sandbox names.
    pub const ACCESS: Access = Access::ReadOnly;
}

/// Role of a backend program, with the name of its section in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BackendRole {
    /// Program of the tool with this name.
    Tool(String),
    /// MCP server with this name.
    McpServer(String),
}

impl BackendRole {
    /// Returns the kind of the backend as a noun.
    #[must_use]
    pub const fn kind_name(&self) -> &'static str {
        match self {
            Self::Tool(_) => "tool",
            Self::McpServer(_) => "MCP server",
        }
    }

    /// Returns the name of the backend.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Tool(name) | Self::McpServer(name) => name,
        }
    }

    /// Returns the path of its section in the configuration.
    #[must_use]
    pub fn section(&self) -> String {
        match self {
            Self::Tool(name) => format!("tools.{name}"),
            Self::McpServer(name) => format!("mcp.servers.{name}"),
        }
    }

    /// Returns the path of a key of its program in the configuration.
    #[must_use]
    pub fn program_key(&self, key: &str) -> String {
        match self {
            Self::Tool(_) => format!("{}.handler.{key}", self.section()),
            Self::McpServer(_) => format!("{}.{key}", self.section()),
        }
    }
}

impl std::fmt::Display for BackendRole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} `{}`", self.kind_name(), self.name())
    }
}
