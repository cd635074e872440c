//! What the door accepted, in our own types.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::id::{AgentId, ContextId, MessageId, PrincipalId};

/// What made a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// A caller of the API.
    Api,
}

/// The raw input. It lives in memory only; what is stored of it is redacted.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Input {
    /// The text for the agent.
    pub text: String,
    /// Values of `{{ param.x }}`.
    pub params: BTreeMap<String, String>,
}

impl fmt::Debug for Input {
    /// Shows sizes only: input may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Input({} bytes, {} params)", self.text.len(), self.params.len())
    }
}

/// One request to one agent, authenticated and well formed.
#[derive(Debug, Clone)]
pub struct Request {
    /// The agent that is asked.
    pub agent: AgentId,
    /// Who asks; owns the execution.
    pub owner: PrincipalId,
    /// The caller's id of the message.
    pub message: MessageId,
    /// The conversation it belongs to.
    pub context: ContextId,
    /// What made it.
    pub trigger: Trigger,
    /// The raw input.
    pub input: Input,
}
