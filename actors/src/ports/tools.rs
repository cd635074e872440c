//! Port to the tools that cognitive agents call.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::model::agent::cognitive::ToolSpec;
use crate::model::id::{AgentId, ExecutionId};

/// Call of a tool. The arguments are checked against the tool's inputs, and raw.
#[derive(Clone)]
pub struct ToolInvocation {
    /// Agent on whose behalf the tool is called.
    pub agent: AgentId,
    /// Execution of the run.
    pub execution: ExecutionId,
    /// Number of the call's step in the run. With the execution, it identifies the call, also when it is repeated.
    pub step: u32,
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
            .field("step", &self.step)
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

/// Tools of this service.
#[async_trait]
pub trait Tools: Send + Sync + 'static {
    /// Performs a call, and returns its result as text. A dropped future ends the call.
    ///
    /// # Errors
    /// Returns a sentence for the model that explains the failure.
    async fn call(&self, call: ToolInvocation) -> Result<String, String>;
}
