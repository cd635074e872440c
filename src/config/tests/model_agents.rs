//! Cognitive agents: their models, their tools, and the programs behind the tools.

mod mcp_servers;
mod models;
mod tool_programs;

use super::*;
