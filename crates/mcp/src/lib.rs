//! MCP client on the standard input and output of a server. The server is not trusted: the length of its messages,
//! their number of values and what it sends without a request are limited.
//!
//! The official library (`rmcp`) negotiates the version of the protocol and writes the requests. `transport` decides
//! which messages of the server reach it.

mod client;
mod connection_end;
mod tool_call_result;
mod transport;

#[cfg(test)]
mod tests;

pub use client::{ListedTool, McpClient, McpError};
pub use connection_end::ConnectionEndReason;
pub use tool_call_result::ToolCallResult;
