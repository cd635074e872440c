//! Completion: one request to a language model, and its reply.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use super::agent::cognitive::ModelReference;
use super::observation::telemetry_events::TokenCounts;

/// Message of the conversation with a model. Raw: it may contain secrets.
#[derive(Clone, PartialEq, Eq)]
pub enum ModelMessage {
    /// Instructions of the service.
    System(String),
    /// Text of the caller, or of the service about the last reply.
    User(String),
    /// Reply of the model.
    Assistant {
        /// Text of the reply.
        text: String,
        /// Calls of the reply.
        calls: Vec<ModelToolCall>,
    },
    /// Result of a call.
    ToolResult {
        /// Id of the call.
        call_id: String,
        /// Result as text.
        text: String,
    },
}

impl fmt::Debug for ModelMessage {
    /// Writes the kind only: the text may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System(_) => "System",
            Self::User(_) => "User",
            Self::Assistant { .. } => "Assistant",
            Self::ToolResult { .. } => "ToolResult",
        })
    }
}

/// Call in the conversation with a model.
#[derive(Clone, PartialEq, Eq)]
pub struct ModelToolCall {
    /// Id of the call in its conversation.
    pub id: String,
    /// Name of the tool.
    pub tool: String,
    /// Arguments as the text of a JSON object.
    pub arguments: String,
}

impl fmt::Debug for ModelToolCall {
    /// Omits the arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelCall").field("tool", &self.tool).finish_non_exhaustive()
    }
}

/// Call that a reply requests.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestedToolCall {
    /// Name of the tool.
    pub tool: String,
    /// Arguments as the text of a JSON object; a model may write something else.
    pub arguments: String,
}

impl fmt::Debug for RequestedToolCall {
    /// Omits the arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyCall").field("tool", &self.tool).finish_non_exhaustive()
    }
}

/// Tool as it is offered to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedTool {
    /// Name of the tool.
    pub name: String,
    /// Description of the tool.
    pub description: String,
    /// JSON Schema of the arguments: an object.
    pub parameters: Value,
}

/// Definition of a tool by its MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDefinition {
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the arguments: an object.
    pub parameters: Value,
}

/// Definitions by the names of the tools.
pub type ToolDefinitions = BTreeMap<String, ToolDefinition>;

/// Request to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletionRequest {
    /// Model to call.
    pub model: ModelReference,
    /// Temperature, from 0 to 2.
    pub temperature: f64,
    /// Conversation so far.
    pub messages: Vec<ModelMessage>,
    /// Tools that the model may call.
    pub tools: Vec<OfferedTool>,
}

/// Reply of a model. Raw: it may contain secrets.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ModelReply {
    /// Text of the reply.
    pub text: String,
    /// Calls, in the order of the reply. The ids of the provider are not kept: the run numbers its calls.
    pub calls: Vec<RequestedToolCall>,
    /// Used tokens; `None` if the provider does not report them.
    pub tokens: Option<TokenCounts>,
    /// True if the provider cut the reply off at the greatest length.
    pub is_cut_off: bool,
}

impl fmt::Debug for ModelReply {
    /// Omits the text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelReply")
            .field("calls", &self.calls)
            .field("tokens", &self.tokens)
            .finish_non_exhaustive()
    }
}
