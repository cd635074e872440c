//! MCP servers that the service starts: one process for each server, which all agents share.
//!
//! The first run that needs a server starts it, and the service ends it after a time without a use. `server` decides on
//! the start, `connection` supervises one `process`, and `definitions` cleans the definitions of tools.

mod connection;
mod definitions;
mod process;
mod schema_check;
mod server;
mod server_context;
mod server_failure;

pub use self::server::{McpServers, ServerHandle};
