//! Client of one server.

use std::borrow::Cow;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, Implementation,
    PaginatedRequestParams, ProtocolVersion, Tool,
};
use rmcp::service::{
    ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _,
    RunningService, ServiceError,
};
use rmcp::{ErrorData, RoleClient};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::connection_end::ConnectionEndReason;
use crate::tool_call_result::ToolCallResult;
use crate::transport::{LineTransport, MALFORMED_RESPONSE_CODE};

/// Versions of the protocol without a handshake, the preferred one first.
const PREFERRED_VERSIONS: [ProtocolVersion; 1] = [ProtocolVersion::V_2026_07_28];

/// Greatest number of tools of a server.
const MAX_TOOLS: usize = 1000;

/// Greatest number of parts in which a server lists its tools.
const MAX_PAGES: usize = 100;

/// Greatest number of values in all definitions of tools together.
const MAX_LIST_VALUES: usize = 50_000;

/// Greatest length of all texts in the definitions of tools together, in bytes.
const MAX_LIST_BYTES: usize = 4 << 20;

/// Greatest length of the message of an error in bytes.
const MAX_ERROR_BYTES: usize = 16 << 10;

/// Failure of a request. Its text is a sentence without a period and without a text of the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// The connection has ended. The server may have performed the request.
    #[error(transparent)]
    ConnectionEnded(#[from] ConnectionEndReason),
    /// The server answered with an error.
    #[error("the MCP server refused the request with the code {code}")]
    RequestRefused {
        /// Code of JSON-RPC or of MCP.
        code: i32,
        /// Text of the server, or its first 16 KiB.
        message: String,
        /// True if the text of the server was longer.
        is_truncated: bool,
    },
    /// The client and the server have no version of the protocol in common.
    #[error(
        "the MCP server supports neither the version 2026-07-28 of the protocol nor an earlier one"
    )]
    NoCommonVersion,
    /// The answer does not follow the protocol.
    #[error("the answer of the MCP server does not follow the protocol")]
    MalformedAnswer,
    /// The tool requests something that this client does not support.
    #[error("the tool {0}, which is not supported")]
    UnsupportedToolRequest(&'static str),
    /// The list of the tools is too long.
    #[error("the list of the MCP server's tools is too long")]
    ToolListTooLong,
}

/// Tool as a server offers it. All texts are those of the server.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedTool {
    /// Name.
    pub name: String,
    /// Description; empty if there is none.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Map<String, Value>,
}

/// Connection to a server. Dropping it closes the input of the server.
#[derive(Debug)]
pub struct McpClient {
    service: RunningService<RoleClient, ClientConfig>,
    end_receiver: watch::Receiver<Option<ConnectionEndReason>>,
}

impl McpClient {
    /// Opens a connection, and negotiates the version of the protocol. `client_version` is that of this product. There
    /// is no time limit: a server may never answer.
    ///
    /// # Errors
    /// Returns the end of the connection, the refusal of the server, or the lack of a common version.
    pub async fn connect(
        server_input: impl AsyncWrite + Send + Unpin + 'static,
        server_output: impl AsyncRead + Send + Unpin + 'static,
        client_version: &str,
    ) -> Result<Self, McpError> {
        let (transport, mut end_receiver) = LineTransport::new(server_input, server_output);
        let implementation = Implementation::new("algonius-supervisor", client_version);
        let config = ClientConfig::new(ClientCapabilities::default(), implementation);
        let lifecycle = ClientLifecycleMode::Auto {
            preferred_versions: PREFERRED_VERSIONS.to_vec(),
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        };
        let service = config.serve_with_lifecycle(transport, lifecycle).await;
        match service {
            Ok(service) => {
                // A server chooses how long its answers stay in the cache, and how many.
                let peer = service.peer();
                peer.set_response_cache_config(ClientCacheConfig::disabled()).await;
                Ok(Self { service, end_receiver })
            }
            Err(error) => Err(convert_connect_error(error, &mut end_receiver).await),
        }
    }

    /// Returns once the connection has ended, with the reason.
    pub async fn wait_for_end(&self) -> ConnectionEndReason {
        let mut end_receiver = self.end_receiver.clone();
        end_receiver
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|end| *end)
            .unwrap_or(ConnectionEndReason::Dropped)
    }

    /// Closes the input of the server, which should exit then. Calls end.
    pub fn close(&self) {
        self.service.cancellation_token().cancel();
    }

    /// Returns true if the connection has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.end_receiver.borrow().is_some()
    }

    /// Lists the tools of the server.
    ///
    /// # Errors
    /// Returns the end of the connection, or the refusal of the server.
    pub async fn list_tools(&self) -> Result<Vec<ListedTool>, McpError> {
        let (mut tools, mut cursor) = (Vec::new(), None);
        let (mut value_count, mut byte_count) = (0, 0);
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.service.peer().list_tools(Some(params)).await;
            let page = match page {
                Ok(page) => page,
                Err(error) => return Err(self.convert_request_error(error).await),
            };
            for tool in page.tools.into_iter().map(ListedTool::from) {
                byte_count += tool.name.len() + tool.description.len();
                tool.input_schema.iter().for_each(|(key, value)| {
                    byte_count += key.len();
                    add_size(value, &mut value_count, &mut byte_count);
                });
                tools.push(tool);
            }
            let is_too_long = value_count > MAX_LIST_VALUES || byte_count > MAX_LIST_BYTES;
            if tools.len() > MAX_TOOLS || is_too_long {
                return Err(McpError::ToolListTooLong);
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(tools);
            }
        }
        Err(McpError::ToolListTooLong)
    }

    /// Calls a tool. If the future is dropped, the server receives a cancellation.
    ///
    /// # Errors
    /// Returns the end of the connection, the refusal of the server, or a request that is not supported.
    pub async fn call_tool(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<ToolCallResult, McpError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        match self.service.peer().call_tool_once(params).await {
            Ok(CallToolResponse::Complete(result)) => Ok(ToolCallResult::from(result)),
            Ok(CallToolResponse::InputRequired(_)) => {
                Err(McpError::UnsupportedToolRequest("requests input"))
            }
            // The client does not announce that it can wait for a result.
            Ok(_) => Err(McpError::UnsupportedToolRequest("defers its result")),
            Err(error) => Err(self.convert_request_error(error).await),
        }
    }

    async fn convert_request_error(&self, error: ServiceError) -> McpError {
        match error {
            ServiceError::McpError(refusal) => convert_refusal(refusal),
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                McpError::ConnectionEnded(self.wait_for_end().await)
            }
            _ => McpError::MalformedAnswer,
        }
    }
}

impl From<Tool> for ListedTool {
    fn from(tool: Tool) -> Self {
        let Tool { name, description, input_schema, .. } = tool;
        Self {
            name: name.into_owned(),
            description: description.map(Cow::into_owned).unwrap_or_default(),
            input_schema: (*input_schema).clone(),
        }
    }
}

/// Adds the number of values in a value, and the length of its texts.
fn add_size(value: &Value, value_count: &mut usize, byte_count: &mut usize) {
    *value_count += 1;
    match value {
        Value::String(text) => *byte_count += text.len(),
        Value::Array(items) => {
            items.iter().for_each(|item| add_size(item, value_count, byte_count));
        }
        Value::Object(members) => members.iter().for_each(|(key, member)| {
            *byte_count += key.len();
            add_size(member, value_count, byte_count);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the failure of a start.
async fn convert_connect_error(
    error: ClientInitializeError,
    end_receiver: &mut watch::Receiver<Option<ConnectionEndReason>>,
) -> McpError {
    match error {
        ClientInitializeError::JsonRpcError(refusal) => convert_refusal(refusal),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            Box::pin(convert_connect_error(*fallback, end_receiver)).await
        }
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => McpError::NoCommonVersion,
        ClientInitializeError::ConnectionClosed(_)
        | ClientInitializeError::TransportError { .. } => {
            let end = end_receiver.wait_for(Option::is_some).await.ok().and_then(|end| *end);
            McpError::ConnectionEnded(end.unwrap_or(ConnectionEndReason::Dropped))
        }
        _ => McpError::MalformedAnswer,
    }
}

fn convert_refusal(refusal: ErrorData) -> McpError {
    if refusal.code == MALFORMED_RESPONSE_CODE {
        return McpError::MalformedAnswer;
    }
    let mut message = refusal.message.into_owned();
    let is_truncated = message.len() > MAX_ERROR_BYTES;
    message.truncate(message.floor_char_boundary(MAX_ERROR_BYTES));
    McpError::RequestRefused { code: refusal.code.0, message, is_truncated }
}
