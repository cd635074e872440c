//! Handler that calls a tool of an MCP server.

use std::sync::Arc;

use algonius_actors::model::agent::cognitive::{ToolHandler, ToolSpec};
use algonius_actors::model::completion::ToolDefinitions;
use algonius_actors::ports::tools::{TextRedactor, ToolInvocation};
use algonius_mcp::ToolCallResult;
use futures_util::future::join_all;
use tokio::task::spawn_blocking;

use super::{MAX_RESULT_BYTES, ToolHandlers};
use crate::drivers::mcp::ServerHandle;

impl ToolHandlers {
    /// Returns the definitions of the tools of MCP servers. The servers are started side by side.
    pub(super) async fn load_mcp_tool_definitions(
        &self,
        tools: &[Arc<ToolSpec>],
        redactor: &TextRedactor,
    ) -> ToolDefinitions {
        let server_tools = tools.iter().filter(|tool| tool.handler == ToolHandler::Mcp);
        let definitions = server_tools.map(async |tool| {
            let (server, name) = self.server_tool(&tool.name)?;
            Some((tool.name.clone(), server.load_tool_definition(name, redactor).await))
        });
        join_all(definitions).await.into_iter().flatten().collect::<ToolDefinitions>()
    }

    /// Calls a tool of an MCP server, and returns its redacted answer.
    pub(super) async fn call_server(&self, call: ToolInvocation) -> Result<String, String> {
        let ToolInvocation { tool, arguments, redactor, .. } = call;
        let Some((server, name)) = self.server_tool(&tool.name) else {
            tracing::error!(tool = tool.name, "tool of an MCP server has no server");
            return Err("the call failed".to_owned());
        };
        let ToolCallResult { text, is_error } = server.call(name, arguments, &redactor).await?;
        if text.len() > MAX_RESULT_BYTES {
            let sentence = "the result of the MCP server has more than 1 MiB; the call may have had its effect";
            return Err(sentence.to_owned());
        }
        // Redaction of 1 MiB takes longer than a task may hold its thread.
        let text = spawn_blocking(move || redactor.redact(&text)).await.map_err(|error| {
            tracing::error!(%error, "redaction of a tool's result failed");
            "the result could not be redacted".to_owned()
        })?;
        match (is_error, text.trim().is_empty()) {
            (false, _) => Ok(text),
            (true, false) => Err(text),
            (true, true) => Err("the tool reports a failure without a reason".to_owned()),
        }
    }

    /// Returns the server of a tool, and the name of the tool there.
    fn server_tool(&self, tool: &str) -> Option<(&Arc<ServerHandle>, &str)> {
        let tool = self.backends.server_tools.get(tool)?;
        Some((self.servers.get(&tool.server)?, &tool.name))
    }
}
