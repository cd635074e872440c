//! Program that performs the calls of a tool.

use super::backend_program::BackendProgram;

/// Program that performs the calls of a tool: one process for each call. Its templates use the names of the tool's
/// inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolProgram {
    /// Program with its sandbox.
    pub program: BackendProgram,
    /// Templates of the arguments, in order.
    pub args: Vec<String>,
    /// Template of the standard input; empty without one.
    pub stdin_template: String,
}
