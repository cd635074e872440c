//! Programs behind the tools of a cognitive agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::backend_program::{BackendProgram, BackendRole};
use super::mcp_server::McpServer;
use super::tool_program::ToolProgram;

/// Programs behind the tools of a cognitive agent. A tool that needs none is in neither table of tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolBackends {
    /// Programs by the names of their tools.
    pub programs: BTreeMap<String, Arc<ToolProgram>>,
    /// Tools of MCP servers by the names of the tools.
    pub server_tools: BTreeMap<String, ServerTool>,
    /// MCP servers by their names: exactly those of `server_tools`.
    pub servers: BTreeMap<String, Arc<McpServer>>,
}

/// Tool that an MCP server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTool {
    /// Name of the server.
    pub server: String,
    /// Name of the tool at its server.
    pub name: String,
}

impl ToolBackends {
    /// Returns all programs, with their roles.
    pub fn backends(&self) -> impl Iterator<Item = (BackendRole, &BackendProgram)> {
        let tools = self
            .programs
            .iter()
            .map(|(name, tool)| (BackendRole::Tool(name.clone()), &tool.program));
        let servers = self.servers.iter();
        let servers =
            servers.map(|(name, server)| (BackendRole::McpServer(name.clone()), &server.program));
        tools.chain(servers)
    }

    /// Returns mutable access to all programs.
    pub fn backends_mut(&mut self) -> impl Iterator<Item = (BackendRole, &mut BackendProgram)> {
        let tools = self.programs.iter_mut();
        let tools = tools.map(|(name, tool)| {
            (BackendRole::Tool(name.clone()), &mut Arc::make_mut(tool).program)
        });
        let servers = self.servers.iter_mut().map(|(name, server)| {
            (BackendRole::McpServer(name.clone()), &mut Arc::make_mut(server).program)
        });
        tools.chain(servers)
    }
}
