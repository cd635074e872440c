//! Handlers of the tools that cognitive agents call: the clock, the notes, programs, and MCP servers.

mod command;
mod notes;
mod server_tool;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use algonius_actors::model::agent::cognitive::{ToolHandler, ToolSpec};
use algonius_actors::model::completion::ToolDefinitions;
use algonius_actors::model::program::tool_backends::ToolBackends;
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::note_store::NoteStore;
use algonius_actors::ports::tools::{TextRedactor, ToolExecutor, ToolInvocation, ToolStopReceiver};
use async_trait::async_trait;
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::json;

use super::mcp::{McpServers, ServerHandle};
use super::program::backend_process::BackendLauncher;

/// Greatest length of a result, in bytes.
const MAX_RESULT_BYTES: usize = 1 << 20;

/// Services that the handlers of all agents share. Cheap to clone.
#[derive(Clone)]
pub struct ToolServices {
    /// Clock of the service.
    pub clock: Arc<dyn Clock>,
    /// Notes of all agents.
    pub notes: Arc<dyn NoteStore>,
    /// Starter of programs.
    pub launcher: BackendLauncher,
    /// MCP servers.
    pub mcp_servers: McpServers,
}

/// Handlers of the tools of an agent. The run has checked the arguments against the tool's inputs.
///
/// | Handler | Arguments | Result |
/// |---|---|---|
/// | `Clock` | none | `{"time": "2027-01-15T08:00:00Z", "weekday": "Friday"}` |
/// | `AddNote` | `text`: string | `{"stored": true}` |
/// | `SearchNotes` | `query`: string, optional | `[{"at": "2027-01-15T08:00:00Z", "text": "…"}]` |
/// | `Command` | those of the tool | standard output of the program |
/// | `Mcp` | those of the server | answer of the server |
pub struct ToolHandlers {
    services: ToolServices,
    backends: ToolBackends,
    /// Servers by their names.
    servers: BTreeMap<String, Arc<ServerHandle>>,
}

impl ToolHandlers {
    /// Creates the handlers of an agent with these programs behind its tools.
    #[must_use]
    pub fn new(services: ToolServices, backends: ToolBackends) -> Self {
        let servers = backends.servers.iter();
        let servers = servers
            .map(|(name, server)| (name.clone(), services.mcp_servers.find_or_create(server)))
            .collect();
        Self { services, backends, servers }
    }

    fn current_time_json(&self) -> String {
        let now = self.services.clock.now();
        json!({ "time": format_rfc3339(now), "weekday": now.format("%A").to_string() }).to_string()
    }
}

#[async_trait]
impl ToolExecutor for ToolHandlers {
    async fn mcp_tool_definitions(
        &self,
        tools: &[Arc<ToolSpec>],
        redactor: &TextRedactor,
    ) -> ToolDefinitions {
        self.load_mcp_tool_definitions(tools, redactor).await
    }

    async fn call(
        &self,
        call: ToolInvocation,
        mut stop: ToolStopReceiver,
    ) -> Result<String, String> {
        match call.tool.handler {
            ToolHandler::Clock => Ok(self.current_time_json()),
            ToolHandler::AddNote => stop.run_until_stopped(self.add_note(&call)).await,
            ToolHandler::SearchNotes => stop.run_until_stopped(self.search_notes(&call)).await,
            // Its processes would outlive a dropped future.
            ToolHandler::Command => self.run_command(call, stop).await,
            ToolHandler::Mcp => stop.run_until_stopped(self.call_server(call)).await,
        }
    }
}

/// Formats a time for a model, in UTC and whole seconds.
fn format_rfc3339(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}
