//! Tool of the configuration, and the keys that all tools have in common.

use std::sync::Arc;

use algonius_actors::model::agent::cognitive::ToolSpec;
use algonius_actors::model::program::mcp_server::McpServer;
use algonius_actors::model::program::tool_backends::ServerTool;
use algonius_actors::model::program::tool_program::ToolProgram;

use crate::config::table::RangeWithDefault;

/// Keys of a tool that are not supported yet.
pub(super) const UNSUPPORTED_KEYS: [&str; 4] =
    ["energy_cost", "handler_class", "max_result_bytes", "tool_calling_only"];

/// Bounds of the time of a call in seconds.
pub(super) const TIMEOUT_BOUNDS: RangeWithDefault<f64> = RangeWithDefault::new(1.0, 3600.0, 60.0);

/// Tool of the configuration, with the performer of its calls.
#[derive(Debug, Clone)]
pub(crate) struct ConfiguredTool {
    pub(crate) spec: Arc<ToolSpec>,
    pub(crate) performer: ToolPerformer,
}

/// Performer of a tool's calls.
#[derive(Debug, Clone)]
pub(crate) enum ToolPerformer {
    /// The service itself.
    Service,
    /// A program for each call.
    Program(Arc<ToolProgram>),
    /// An MCP server.
    Server(ServerTool, Arc<McpServer>),
}
