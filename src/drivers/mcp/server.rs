//! Server with its present connection: starts it when it is needed, and not too often.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use algonius_actors::model::completion::ToolDefinition;
use algonius_actors::model::program::mcp_server::McpServer;
use algonius_actors::ports::tools::TextRedactor;
use algonius_mcp::ToolCallResult;
use serde_json::{Map, Value};
use tokio::sync::{Mutex, OwnedMutexGuard, watch};
use tokio::time::{Instant, timeout};

use super::connection::{ConnectionGuard, ServerConnection};
use super::definitions::{redacted_definition, unavailable_definition};
use super::server_context::SharedServerContext;
use super::server_failure::ServerFailure;
use crate::drivers::program::backend_process::BackendLauncher;

/// Greatest pause after a start that failed.
const MAX_RESTART_PAUSE: Duration = Duration::from_secs(60);

/// Time in which all servers end at a stop of the service. The process holder kills the servers that remain.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// MCP servers that agents use. Cheap to clone.
#[derive(Clone)]
pub struct McpServers(Arc<ServerRegistry>);

struct ServerRegistry {
    context: SharedServerContext,
    /// Servers that agents use. The agents own them: the last one ends the server.
    #[expect(clippy::disallowed_types, reason = "held for a look-up, and never awaited in")]
    servers: std::sync::Mutex<Vec<Weak<ServerHandle>>>,
}

impl McpServers {
    /// Creates an empty set whose servers are started by this launcher.
    #[must_use]
    pub fn new(launcher: BackendLauncher) -> Self {
        let context = SharedServerContext::new(launcher);
        Self(Arc::new(ServerRegistry { context, servers: Default::default() }))
    }

    /// Returns the server with this configuration. If the configuration of a server changes, runs that use the earlier
    /// one keep it.
    #[must_use]
    pub fn find_or_create(&self, server: &Arc<McpServer>) -> Arc<ServerHandle> {
        let ServerRegistry { context, servers } = &*self.0;
        let mut servers = servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.retain(|handle| handle.strong_count() > 0);
        let mut live_handles = servers.iter().filter_map(Weak::upgrade);
        if let Some(present) = live_handles.find(|present| present.server == *server) {
            return present;
        }
        let handle = Arc::new(ServerHandle {
            server: Arc::clone(server),
            context: context.clone(),
            state: Arc::default(),
            last_failure: Arc::default(),
        });
        servers.push(Arc::downgrade(&handle));
        handle
    }

    /// Ends all servers, including those without an agent. No server starts afterwards.
    pub async fn shut_down(&self) {
        if timeout(END_TIMEOUT, self.0.context.stop()).await.is_err() {
            tracing::warn!("MCP servers did not end in time");
        }
    }
}

/// Server with its present connection. Dropping it ends the server.
pub struct ServerHandle {
    server: Arc<McpServer>,
    context: SharedServerContext,
    /// Locked while the server starts: each call needs the connection.
    state: Arc<Mutex<ServerState>>,
    last_failure: Arc<LastFailureSender>,
}

/// Failure of the last start; `None` after a success.
type LastFailureSender = watch::Sender<Option<Arc<ServerFailure>>>;

/// State of a server.
#[derive(Default)]
enum ServerState {
    /// No process runs.
    #[default]
    NotRunning,
    /// The process runs, or has just ended.
    Connected(Arc<ServerConnection>),
    /// The last starts failed.
    Failed { failure: Arc<ServerFailure>, failure_count: u32, next_start: Instant },
}

impl ServerHandle {
    /// Returns the redacted definition of a tool. Starts the server if it does not run. After a failed start, this
    /// happens in the background, so that a server that does not answer delays one turn of a run and not each.
    pub(in crate::drivers) async fn load_tool_definition(
        self: &Arc<Self>,
        tool: &str,
        redactor: &TextRedactor,
    ) -> ToolDefinition {
        let last_failure = self.last_failure.borrow().clone();
        if let Some(failure) = last_failure {
            // While the state is locked, a start runs.
            if self.state.try_lock().is_ok() {
                let server = Arc::clone(self);
                // The work ends with the start, or immediately during the pause.
                self.context.spawn(async move { server.acquire_connection().await.map(drop) });
            }
            return unavailable_definition(&failure.sentence);
        }
        match self.acquire_connection().await {
            Ok(connection) => match connection.tool_definition(tool) {
                Some(definition) => redacted_definition(&definition, redactor),
                None => unavailable_definition(&missing_tool_sentence(&self.server.name, tool)),
            },
            Err(failure) => unavailable_definition(&failure.sentence),
        }
    }

    /// Calls a tool, and returns its raw answer. Starts the server if it does not run. If the future is dropped, the
    /// server receives a cancellation.
    ///
    /// # Errors
    /// Returns a redacted sentence for the model.
    pub(in crate::drivers) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        redactor: &TextRedactor,
    ) -> Result<ToolCallResult, String> {
        let connection = self.acquire_connection().await;
        let connection =
            connection.map_err(|failure| failure.redacted_sentence_with_server_text(redactor))?;
        if connection.tool_definition(tool).is_none() {
            let sentence = missing_tool_sentence(&self.server.name, tool);
            let names = redactor.redact(&connection.tool_names_text());
            return Err(format!("{sentence}; it has {names}"));
        }
        connection.call(tool, arguments, redactor).await
    }

    /// Returns the right to use an open connection.
    async fn acquire_connection(&self) -> Result<ConnectionGuard, Arc<ServerFailure>> {
        let state = Arc::clone(&self.state).lock_owned().await;
        match &*state {
            ServerState::Connected(connection) => {
                if let Some(guard) = connection.acquire() {
                    return Ok(guard);
                }
            }
            ServerState::Failed { failure, next_start, .. } if Instant::now() < *next_start => {
                return Err(Arc::clone(failure));
            }
            ServerState::Failed { .. } | ServerState::NotRunning => {}
        }
        // A task of its own, which completes the start, or removes it, if this future is dropped.
        let last_failure = Arc::clone(&self.last_failure);
        let start_future =
            start_server(Arc::clone(&self.server), self.context.clone(), (state, last_failure));
        // Without the span of this run: the library would keep it for the life of the connection.
        let start_result = self.context.spawn(start_future).await;
        start_result.unwrap_or_else(|error| {
            tracing::error!(%error, "task that starts an MCP server failed");
            Err(Arc::new(ServerFailure::new("the MCP server could not be started")))
        })
    }
}

/// Starts a server, and writes the result into its state.
async fn start_server(
    server: Arc<McpServer>,
    context: SharedServerContext,
    (mut state, last_failure): (OwnedMutexGuard<ServerState>, Arc<LastFailureSender>),
) -> Result<ConnectionGuard, Arc<ServerFailure>> {
    let failure_count = match std::mem::take(&mut *state) {
        ServerState::Connected(connection) => {
            // Both processes could use the same files.
            connection.wait_until_removed().await;
            0
        }
        ServerState::Failed { failure_count: failures, .. } => failures,
        ServerState::NotRunning => 0,
    };
    let started_at = Instant::now();
    let connection_result = ServerConnection::open(Arc::clone(&server), &context).await;
    let failure = match connection_result.map(Arc::new) {
        Ok(connection) => match connection.acquire() {
            Some(guard) => {
                *state = ServerState::Connected(connection);
                last_failure.send_replace(None);
                return Ok(guard);
            }
            None => {
                connection.wait_until_removed().await;
                ServerFailure::new("the MCP server ended at once")
            }
        },
        Err(failure) => failure,
    };
    let failure = Arc::new(failure);
    tracing::warn!(server = server.name, reason = failure.sentence, "MCP server did not start");
    let failure_count = failure_count.saturating_add(1);
    // Runs spend at most half of their time on waits for a server that does not answer.
    let next_start = Instant::now() + restart_pause(failure_count).max(started_at.elapsed());
    *state = ServerState::Failed { failure: Arc::clone(&failure), failure_count, next_start };
    last_failure.send_replace(Some(Arc::clone(&failure)));
    Err(failure)
}

/// Returns the pause after this number of failed starts in a row: 1 s, 2 s, 4 s, and so on.
fn restart_pause(failure_count: u32) -> Duration {
    let seconds = 1_u64.checked_shl(failure_count.saturating_sub(1)).unwrap_or(u64::MAX);
    Duration::from_secs(seconds).min(MAX_RESTART_PAUSE)
}

fn missing_tool_sentence(server: &str, tool: &str) -> String {
    format!("the MCP server `{server}` has no tool `{tool}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_a_minute() {
        let seconds =
            [1, 2, 3, 6, 7, 64, 65, u32::MAX].map(|failures| restart_pause(failures).as_secs());
        assert_eq!(seconds, [1, 2, 4, 32, 60, 60, 60, 60]);
    }
}
