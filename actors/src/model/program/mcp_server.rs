//! MCP server that the service starts: a program that offers tools on its standard input and output.

use std::time::Duration;

use super::backend_program::BackendProgram;

/// MCP server that the service starts. All agents that use it share one process.
#[derive(Debug, Clone, PartialEq)]
pub struct McpServer {
    /// Name in the configuration.
    pub name: String,
    /// Program with its sandbox.
    pub program: BackendProgram,
    /// Arguments, in order.
    pub args: Vec<String>,
    /// Time limit from its start to the list of its tools.
    pub start_timeout: Duration,
    /// Time without a use after which the service ends the process.
    pub idle_timeout: Duration,
}
