//! What the door accepted, in our own types.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::content::{Content, Part};
use super::id::{AgentId, ContextId, ExecutionId, MessageId, PrincipalId};

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
    /// What is said.
    pub parts: Vec<Part>,
    /// Values of `{{ param.x }}`.
    pub params: BTreeMap<String, String>,
}

impl fmt::Debug for Input {
    /// Shows sizes only: input may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Input({} parts, {} params)", self.parts.len(), self.params.len())
    }
}

impl Input {
    /// An input of text.
    #[must_use]
    pub fn text_of(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::text(text)], params: BTreeMap::new() }
    }

    /// The text for the agent: its parts of text and of data, one under the other. Files are
    /// handed over as files.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match &part.content {
            Content::Text(text) => Some(text.clone()),
            Content::Data(data) => Some(data.to_string()),
            Content::Bytes(_) | Content::Url(_) => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// How much it is, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let sizes = self.parts.iter().map(|part| match &part.content {
            Content::Text(text) | Content::Bytes(text) | Content::Url(text) => text.len(),
            Content::Data(data) => data.to_string().len(),
        });
        sizes.sum()
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
    /// The caller's own name for the request, whatever the message's id: its `Idempotency-Key`.
    pub idempotency: Option<String>,
    /// The conversation it belongs to.
    pub context: ContextId,
    /// The execution that it continues, which asked for it.
    pub continues: Option<ExecutionId>,
    /// What made it.
    pub trigger: Trigger,
    /// The raw input.
    pub input: Input,
}

/// Under what a request is known. Each key alone finds it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    /// Of (owner, agent, message).
    pub message: [u8; 32],
    /// Of (owner, agent, the caller's own name for it).
    pub named: Option<[u8; 32]>,
}

impl Keys {
    /// Each key.
    pub fn each(self) -> impl Iterator<Item = [u8; 32]> {
        std::iter::once(self.message).chain(self.named)
    }
}
