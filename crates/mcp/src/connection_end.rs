//! Ends of a connection.

/// Reason why a connection to a server has ended. Its text is a sentence without a period, which a model may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionEndReason {
    /// The server has closed its output, which happens when it exits.
    #[error("the MCP server closed its output")]
    OutputClosed,
    /// The server has closed its input.
    #[error("the MCP server closed its input")]
    InputClosed,
    /// The server does not read its input.
    #[error("the MCP server did not read its input within 10 s")]
    InputUnread,
    /// A message of the server is too long.
    #[error("the MCP server sent a message of more than 4 MiB")]
    MessageTooLong,
    /// A message of the server has too many values.
    #[error("the MCP server sent a message of more than 100000 values")]
    MessageTooComplex,
    /// The server has sent too much that answers no request.
    #[error("the MCP server sent more than 16 MiB that answer no request")]
    TooMuchUnrequestedOutput,
    /// This side has dropped the connection.
    #[error("the connection to the MCP server was closed")]
    Dropped,
}
