//! Supervisor of a process: waits for a reason to end it, and ends it.

use std::sync::Arc;
use std::time::Duration;

use algonius_mcp::{ConnectionEndReason, McpClient};
use tokio::sync::watch;
use tokio::time::timeout;

use super::{ConnectionPhase, ConnectionUsage, kill_and_explain_end};
use crate::drivers::mcp::process::ServerProcess;
use crate::drivers::mcp::server_failure::ServerFailure;

/// Supervisor of a process.
pub(super) struct ConnectionSupervisor {
    /// Name of the server.
    pub(super) server_name: String,
    /// Time without a use after which it ends the process.
    pub(super) idle_timeout: Duration,
    pub(super) process: ServerProcess,
    pub(super) client: Arc<McpClient>,
    pub(super) usage: watch::Sender<ConnectionUsage>,
    /// Receiver whose channel closes when the connection is dropped.
    pub(super) connection_drop_receiver: watch::Receiver<()>,
    /// True once the service stops.
    pub(super) stop_receiver: watch::Receiver<bool>,
    pub(super) phase: watch::Sender<ConnectionPhase>,
}

/// Cause of the end of a process.
enum EndCause {
    /// The process has ended or exceeded a limit.
    Process(String),
    /// The connection has ended.
    Connection(ConnectionEndReason),
    /// The process is no longer needed.
    NoLongerNeeded,
}

impl ConnectionSupervisor {
    /// Waits for a reason to end the process, and ends it.
    pub(super) async fn run(self) {
        let Self {
            server_name,
            idle_timeout,
            mut process,
            client,
            usage,
            mut connection_drop_receiver,
            stop_receiver: mut stop,
            phase,
        } = self;
        let cause = tokio::select! {
            sentence = process.wait_for_end_or_limit() => EndCause::Process(sentence),
            reason = client.wait_for_end() => EndCause::Connection(reason),
            () = close_when_idle(&usage, idle_timeout) => EndCause::NoLongerNeeded,
            // The only change is the end of its sender.
            _ = connection_drop_receiver.changed() => EndCause::NoLongerNeeded,
            _ = stop.wait_for(|is_stopping| *is_stopping) => EndCause::NoLongerNeeded,
        };
        let failure = match cause {
            EndCause::Process(sentence) => process.kill_and_explain(sentence).await,
            EndCause::Connection(end) => kill_and_explain_end(end, &mut process).await,
            EndCause::NoLongerNeeded => ServerFailure::new("the service ended the MCP server"),
        };
        let failure = Arc::new(failure);
        phase.send_replace(ConnectionPhase::Ending(Arc::clone(&failure)));
        client.close();
        process.wait_for_exit_or_terminate().await;
        process.kill_and_clean_up().await;
        tracing::info!(server = server_name, reason = failure.sentence, "MCP server ended");
        phase.send_replace(ConnectionPhase::Removed(failure));
    }
}

/// Closes the connection for further uses, and returns, once nothing has used it for this time.
async fn close_when_idle(usage: &watch::Sender<ConnectionUsage>, idle_timeout: Duration) {
    let mut changes = usage.subscribe();
    loop {
        let is_used = changes.borrow_and_update().users > 0;
        if is_used {
            _ = changes.changed().await; // The sender is alive.
        } else if timeout(idle_timeout, changes.changed()).await.is_err() {
            let is_closed = usage.send_if_modified(|usage| {
                usage.is_closed = usage.users == 0;
                usage.is_closed
            });
            if is_closed {
                return;
            }
        }
    }
}
