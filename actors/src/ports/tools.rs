//! Port to the tools that cognitive agents call.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::model::agent::cognitive::ToolSpec;
use crate::model::completion::ToolDefinitions;
use crate::model::id::{AgentId, ExecutionId};

/// Call of a tool. The arguments are checked against the tool's inputs, and raw.
#[derive(Clone)]
pub struct ToolInvocation {
    /// Agent on whose behalf the tool is called.
    pub agent: AgentId,
    /// Execution of the run.
    pub execution: ExecutionId,
    /// Number of the call's step in the run. With the execution, it identifies the call, also when it is repeated.
    pub step_number: u32,
    /// Tool to call.
    pub tool: Arc<ToolSpec>,
    /// Arguments by name.
    pub arguments: Map<String, Value>,
    /// Redactor of texts that a tool stores.
    pub redactor: TextRedactor,
}

impl fmt::Debug for ToolInvocation {
    /// Omits the arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolInvocation")
            .field("agent", &self.agent)
            .field("execution", &self.execution)
            .field("step", &self.step_number)
            .finish_non_exhaustive()
    }
}

/// Function that removes the secrets from a text.
#[derive(Clone)]
pub struct TextRedactor(pub Arc<dyn Fn(&str) -> String + Send + Sync>);

impl TextRedactor {
    /// Returns the text without its secrets.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        (self.0)(text)
    }
}

/// Receiver of the order to stop a call.
#[derive(Debug)]
pub struct ToolStopReceiver(watch::Receiver<bool>);

impl ToolStopReceiver {
    /// Creates a receiver, and the sender with which [`request_stop`](ToolStopSender::request_stop) orders the stop.
    #[must_use]
    pub fn channel() -> (ToolStopSender, Self) {
        let (sender, receiver) = watch::channel(false);
        (ToolStopSender(sender), Self(receiver))
    }

    /// Returns true if the call has to stop.
    #[must_use]
    pub fn is_stop_requested(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Returns once the call has to stop: after the order, or if nothing waits for the call any more.
    pub async fn wait(&mut self) {
        _ = self.0.wait_for(|is_ordered| *is_ordered).await; // A dropped sender is an order too.
    }

    /// Returns the result of `work`, which is dropped if the call has to stop.
    ///
    /// # Errors
    /// Returns that of `work`, or a sentence that nothing reads.
    pub async fn run_until_stopped(
        &mut self,
        work: impl Future<Output = Result<String, String>>,
    ) -> Result<String, String> {
        tokio::select! {
            result = work => result,
            () = self.wait() => Err("the call was stopped".to_owned()),
        }
    }
}

/// Sender of the order to stop a call. Dropping it is an order too.
#[derive(Debug)]
pub struct ToolStopSender(watch::Sender<bool>);

impl ToolStopSender {
    /// Orders the call to stop.
    pub fn request_stop(&self) {
        self.0.send_replace(true);
    }
}

/// Tools of this service.
#[async_trait]
pub trait ToolExecutor: Send + Sync + 'static {
    /// Returns the redacted definitions of those of the tools that MCP servers define. May start the servers. If a
    /// server gives no definition of a tool, the description states the reason.
    async fn mcp_tool_definitions(
        &self,
        tools: &[Arc<ToolSpec>],
        redactor: &TextRedactor,
    ) -> ToolDefinitions;

    /// Performs a call, and returns its result as text. After the order to stop, the call returns soon, and without a
    /// meaningful result. When it has returned, no process and no file of it is left, except those of an MCP server,
    /// which receives a cancellation. If the future is dropped instead, this happens in the background.
    ///
    /// # Errors
    /// Returns a sentence for the model that explains the failure.
    async fn call(&self, call: ToolInvocation, stop: ToolStopReceiver) -> Result<String, String>;
}
