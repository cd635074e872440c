//! Program that performs the calls of a tool, in a sandbox and an environment of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::Variable;
use crate::model::access::Access;
use crate::model::host::resources::ResourceLimits;
use crate::model::host::sandbox::{Confinement, Sandbox};

/// Program that performs the calls of a tool: one process for each call. Its templates use the names of the tool's
/// inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolProgram {
    /// Absolute path of the executable.
    pub command: PathBuf,
    /// Templates of the arguments, in order.
    pub args: Vec<String>,
    /// Template of the standard input; empty without one.
    pub stdin: String,
    /// Environment variables besides the allow-list.
    pub env: BTreeMap<String, Variable>,
    /// Absolute path of the working folder; `None` for an empty folder of the call.
    pub working_dir: Option<PathBuf>,
    /// Home of the program.
    pub home: PathBuf,
    /// Sandbox of the program.
    pub sandbox: Sandbox,
    /// Resource limits of each call, for the program with all that it starts.
    pub resources: ResourceLimits,
    /// Confinement on this machine, decided when the service starts.
    pub confinement: Confinement,
}

impl ToolProgram {
    /// Access of all tools: they change only the folders that their sandbox names.
    pub const ACCESS: Access = Access::ReadOnly;
}
