//! Tools of MCP servers: with a section `[tools.<name>]`, or named by an agent only.

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::agent::cognitive::{ToolHandler, ToolSpec};
use algonius_actors::model::program::mcp_server::McpServer;
use algonius_actors::model::program::tool_backends::ServerTool;

use super::configured_tool::{ConfiguredTool, TIMEOUT_BOUNDS, ToolPerformer, UNSUPPORTED_KEYS};
use super::mcp_servers::SERVER_TOOL_SEPARATOR;
use super::{McpServerCatalog, is_valid_name};
use crate::config::diagnostics::new_diagnostic;
use crate::config::table::{Section, SourcePosition};

/// Reads a tool whose section has the source `mcp`.
pub(super) fn read(
    table: &mut Section<'_>,
    name: &str,
    servers: &McpServerCatalog,
) -> Option<ConfiguredTool> {
    table.report_if_missing("server");
    table.report_if_missing("mcp_tool_name");
    let server = table.nonblank_text("server");
    let tool = table.nonblank_text("mcp_tool_name");
    let spec = ToolSpec {
        name: name.to_owned(),
        description: table.nonblank_text("description").map(|text| text.value).unwrap_or_default(),
        inputs: None,
        idempotent: table.flag("idempotent", false),
        timeout: table.duration("timeout", TIMEOUT_BOUNDS),
        handler: ToolHandler::Mcp,
    };
    table.refuse_unsupported_keys(&UNSUPPORTED_KEYS);
    let (server, tool) = (server?, tool?);
    let server = find_server(table, (&server.value, &server.position), servers)?;
    Some(configured_tool(spec, server, tool.value))
}

/// Returns the tool that an agent names without a section for it, such as `memory__search_nodes`. Reports its faults.
pub(super) fn read_qualified_tool(
    agent: &Section<'_>,
    (name, position): (&str, &SourcePosition),
    servers: &McpServerCatalog,
) -> Option<ConfiguredTool> {
    let (server, tool) = name.split_once(SERVER_TOOL_SEPARATOR)?;
    let server = find_server(agent, (server, position), servers)?;
    if !is_valid_name(name) || tool.is_empty() {
        let diagnostic = new_diagnostic("is no name for a model: 1 to 64 of A-Z a-z 0-9 _ -")
            .with_hint(
                "write a section `[tools.<name>]` with `source = \"mcp\"` and `mcp_tool_name`",
            );
        agent.reader.report_error(position, diagnostic);
        return None;
    }
    let spec = ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        inputs: None,
        idempotent: false,
        timeout: Duration::from_secs_f64(TIMEOUT_BOUNDS.default),
        handler: ToolHandler::Mcp,
    };
    Some(configured_tool(spec, server, tool.to_owned()))
}

/// Returns the server with this name. Reports a name that no server has; the faults of a server have been reported.
fn find_server<'s>(
    section: &Section<'_>,
    (name, position): (&str, &SourcePosition),
    servers: &'s McpServerCatalog,
) -> Option<&'s Arc<McpServer>> {
    let Some(server) = servers.get(name) else {
        let diagnostic = new_diagnostic(format!("there is no section `[mcp.servers.{name}]`"));
        let known = servers.keys().map(String::as_str);
        section.reader.report_error(position, diagnostic.suggest_from(name, known));
        return None;
    };
    server.as_ref()
}

fn configured_tool(spec: ToolSpec, server: &Arc<McpServer>, name: String) -> ConfiguredTool {
    let tool = ServerTool { server: server.name.clone(), name };
    ConfiguredTool {
        spec: Arc::new(spec),
        performer: ToolPerformer::Server(tool, Arc::clone(server)),
    }
}
