//! Connection to one process of a server. A task supervises the process, and ends it when the connection is not used
//! for some time, when it fails, or when it is dropped.

mod supervisor;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::completion::ToolDefinition;
use algonius_actors::model::program::mcp_server::McpServer;
use algonius_actors::ports::tools::TextRedactor;
use algonius_mcp::{ConnectionEndReason, ListedTool, McpClient, McpError, ToolCallResult};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use self::supervisor::ConnectionSupervisor;
use super::definitions::{list_callable_names, tool_definition};
use super::process::ServerProcess;
use super::server_context::SharedServerContext;
use super::server_failure::ServerFailure;

/// Time for the exit of a process that has closed its output: its exit code is a clearer reason than the closed pipe.
const EXIT_CODE_TIMEOUT: Duration = Duration::from_secs(2);

/// Definitions by the names of the tools at the server.
type ToolDefinitionMap = BTreeMap<String, Arc<ToolDefinition>>;

/// Open connection to a server. Dropping it ends the process.
pub(super) struct ServerConnection {
    client: Arc<McpClient>,
    tool_definitions: ToolDefinitionMap,
    usage: watch::Sender<ConnectionUsage>,
    phase: watch::Receiver<ConnectionPhase>,
    /// Dropping it orders the supervisor to end the process.
    _connection_drop_sender: watch::Sender<()>,
}

/// Usage of a connection.
#[derive(Debug, Default)]
struct ConnectionUsage {
    /// Number of present users.
    users: usize,
    /// True once the process is ended because nothing used it.
    is_closed: bool,
}

/// Phase of a connection, by what the supervisor of its process has done.
#[derive(Debug, Clone)]
enum ConnectionPhase {
    /// The process runs.
    Running,
    /// The process has failed, or is being ended.
    Ending(Arc<ServerFailure>),
    /// No process and no file is left.
    Removed(Arc<ServerFailure>),
}

/// Right to use a connection: its process is not ended for lack of use while one exists.
pub(super) struct ConnectionGuard(Arc<ServerConnection>);

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.usage.send_modify(|usage| usage.users -= 1);
    }
}

impl ServerConnection {
    /// Starts the server, and lists its tools.
    ///
    /// # Errors
    /// Returns the reason why the server cannot be used. No process of it is left then.
    pub(super) async fn open(
        server: Arc<McpServer>,
        context: &SharedServerContext,
    ) -> Result<Self, ServerFailure> {
        let mut stop_receiver = context.stop_receiver();
        if *stop_receiver.borrow() {
            return Err(ServerFailure::new("the service stops"));
        }
        let (mut process, (input, output)) =
            ServerProcess::start(Arc::clone(&server), &context.launcher).await?;
        let start_future = async {
            let client = McpClient::connect(input, output, env!("CARGO_PKG_VERSION")).await?;
            let tools = client.list_tools().await?;
            // A long list takes longer than a task may hold its thread.
            let definitions = spawn_blocking(move || definitions_by_name(tools)).await;
            Ok::<_, McpError>((client, definitions))
        };
        let failure_cause = tokio::select! {
            started = timeout(server.start_timeout, start_future) => match started {
                Ok(Ok((client, Ok(definitions)))) => {
                    return Ok(Self::create_supervised(process, (client, definitions), &server, context));
                }
                Ok(Ok((_, Err(error)))) => {
                    tracing::error!(%error, "reading the definitions of tools failed");
                    Ok("the definitions of the tools could not be read".to_owned())
                }
                Ok(Err(error)) => Err(error),
                Err(_) => Ok(start_timeout_sentence(&server)),
            },
            sentence = process.wait_for_end_or_limit() => Ok(sentence),
            _ = stop_receiver.wait_for(|is_stopping| *is_stopping) => Ok("the service stops".to_owned()),
        };
        let failure = match failure_cause {
            Ok(sentence) => process.kill_and_explain(sentence).await,
            Err(error) => failure_from_start_error(error, &mut process).await,
        };
        process.kill_and_clean_up().await;
        Err(failure)
    }

    /// Creates the connection, and the task that supervises the process.
    fn create_supervised(
        process: ServerProcess,
        (client, definitions): (McpClient, ToolDefinitionMap),
        server: &McpServer,
        context: &SharedServerContext,
    ) -> Self {
        let name = server.name.clone();
        tracing::info!(server = name, tools = definitions.len(), "MCP server started");
        let client = Arc::new(client);
        let (phase_sender, phase) = watch::channel(ConnectionPhase::Running);
        let (connection_drop_sender, connection_drop_receiver) = watch::channel(());
        let usage = watch::Sender::new(ConnectionUsage::default());
        let supervisor = ConnectionSupervisor {
            server_name: name,
            idle_timeout: server.idle_timeout,
            process,
            client: Arc::clone(&client),
            usage: usage.clone(),
            connection_drop_receiver,
            stop_receiver: context.stop_receiver(),
            phase: phase_sender,
        };
        // Without the span of the run that needs the server first: others use it too.
        context.spawn(supervisor.run());
        Self {
            client,
            tool_definitions: definitions,
            usage,
            phase,
            _connection_drop_sender: connection_drop_sender,
        }
    }

    /// Uses the connection; `None` if its process has failed or is being ended.
    pub(super) fn acquire(self: &Arc<Self>) -> Option<ConnectionGuard> {
        let is_running = matches!(*self.phase.borrow(), ConnectionPhase::Running);
        if !is_running || self.client.has_ended() {
            return None;
        }
        let is_open = self.usage.send_if_modified(|usage| {
            usage.users += usize::from(!usage.is_closed);
            !usage.is_closed
        });
        is_open.then(|| ConnectionGuard(Arc::clone(self)))
    }

    /// Returns when no process and no file of the connection is left.
    pub(super) async fn wait_until_removed(&self) {
        let is_removed = |phase: &ConnectionPhase| matches!(phase, ConnectionPhase::Removed(_));
        // If the supervisor has panicked, the process is killed in the background.
        _ = self.phase.clone().wait_for(is_removed).await;
    }
}

impl ConnectionGuard {
    /// Returns the definition of a tool.
    pub(super) fn tool_definition(&self, tool: &str) -> Option<Arc<ToolDefinition>> {
        self.0.tool_definitions.get(tool).cloned()
    }

    /// Returns the names of the tools as a text.
    pub(super) fn tool_names_text(&self) -> String {
        list_callable_names(self.0.tool_definitions.keys())
    }

    /// Calls a tool, and returns its raw answer.
    ///
    /// # Errors
    /// Returns a redacted sentence for the model.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        redactor: &TextRedactor,
    ) -> Result<ToolCallResult, String> {
        let failure = match self.0.client.call_tool(tool, arguments).await {
            Ok(answer) => return Ok(answer),
            Err(McpError::ConnectionEnded(_)) => self.wait_for_failure().await,
            Err(error @ McpError::RequestRefused { .. }) => {
                return Err(
                    refused_request_failure(error).redacted_sentence_with_server_text(redactor)
                );
            }
            Err(error) => return Err(format!("{error}; the call may have had its effect")),
        };
        let sentence = failure.redacted_sentence_with_server_text(redactor);
        Err(format!("the call was interrupted, and may have had its effect: {sentence}"))
    }

    /// Returns the failure of the process, once it is known.
    async fn wait_for_failure(&self) -> Arc<ServerFailure> {
        let mut phase = self.0.phase.clone();
        let has_ended = |phase: &ConnectionPhase| !matches!(phase, ConnectionPhase::Running);
        match phase.wait_for(has_ended).await.as_deref() {
            Ok(ConnectionPhase::Ending(failure) | ConnectionPhase::Removed(failure)) => {
                Arc::clone(failure)
            }
            Ok(ConnectionPhase::Running) | Err(_) => {
                Arc::new(ServerFailure::new("the MCP server ended"))
            }
        }
    }
}

fn definitions_by_name(tools: Vec<ListedTool>) -> ToolDefinitionMap {
    tools.into_iter().map(|tool| (tool.name.clone(), Arc::new(tool_definition(tool)))).collect()
}

/// Returns the failure of a request that the server refused.
fn refused_request_failure(error: McpError) -> ServerFailure {
    let sentence = error.to_string();
    match error {
        McpError::RequestRefused { message, is_truncated, .. } => {
            ServerFailure { sentence, server_text: message, is_cut: is_truncated }
        }
        _ => ServerFailure::new(sentence),
    }
}

fn start_timeout_sentence(server: &McpServer) -> String {
    let seconds = server.start_timeout.as_secs_f64();
    format!(
        "the MCP server did not list its tools within {seconds} s (`start_timeout`); a command that installs it first \
         needs the network"
    )
}

/// Returns the failure of a start.
async fn failure_from_start_error(error: McpError, process: &mut ServerProcess) -> ServerFailure {
    match error {
        McpError::RequestRefused { .. } => refused_request_failure(error),
        McpError::ConnectionEnded(end) => kill_and_explain_end(end, process).await,
        error => process.kill_and_explain(error.to_string()).await,
    }
}

/// Returns the failure of a process whose connection has ended.
async fn kill_and_explain_end(
    end: ConnectionEndReason,
    process: &mut ServerProcess,
) -> ServerFailure {
    let mut sentence = end.to_string();
    // A server that has exceeded a limit may exit too, because its input is closed.
    if matches!(end, ConnectionEndReason::OutputClosed | ConnectionEndReason::InputClosed)
        && let Ok(exit) = timeout(EXIT_CODE_TIMEOUT, process.wait_for_end_or_limit()).await
    {
        sentence = exit;
    }
    process.kill_and_explain(sentence).await
}
