//! What the door accepted, in our own types.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::content::{Content, Part};
use super::id::{AgentId, ContextId, ExecutionId, MessageId, PrincipalId};
use super::schedule::ScheduleId;
use super::trace::Trace;

/// What made a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// A caller of the API.
    Api,
    /// A caller who wants to know whether the agent works.
    Probe,
    /// A time of a schedule.
    Schedule {
        /// Which schedule.
        id: ScheduleId,
        /// Which time.
        planned: DateTime<Utc>,
    },
}

impl Trigger {
    /// Its published word.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Probe => "probe",
            Self::Schedule { .. } => "schedule",
        }
    }

    /// The schedule that it was, if it was one.
    #[must_use]
    pub fn schedule(&self) -> Option<&str> {
        match self {
            Self::Api | Self::Probe => None,
            Self::Schedule { id, .. } => Some(id.as_str()),
        }
    }
}

/// What a caller chose for one request, where the agent's allowance lets it. It holds no secret: what
/// redaction would change is refused, so that it can be stored as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Overrides {
    /// The absolute folder to start in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Variables of the environment.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

impl Overrides {
    /// Whether nothing was chosen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.working_dir.is_none() && self.env.is_empty()
    }

    /// How much it is, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let env = self.env.iter().map(|(name, value)| name.len() + value.len());
        self.working_dir.as_ref().map_or(0, String::len) + env.sum::<usize>()
    }
}

/// The raw input. It lives in memory only; what is stored of it is redacted.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Input {
    /// What is said.
    pub parts: Vec<Part>,
    /// Values of `{{ param.x }}`.
    pub params: BTreeMap<String, String>,
    /// What the caller chose beside it.
    pub overrides: Overrides,
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
        Self { parts: vec![Part::text(text)], ..Self::default() }
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
        sizes.sum::<usize>() + self.overrides.size()
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
    /// Whether it opens that conversation.
    pub opens: bool,
    /// The execution that it continues, which asked for it.
    pub continues: Option<ExecutionId>,
    /// What was chosen for that one before; it stands unless this request chooses anew.
    pub standing: Overrides,
    /// What made it.
    pub trigger: Trigger,
    /// Where in a trace it is asked; of an execution that it continues, where that was.
    pub trace: Option<Trace>,
    /// The raw input.
    pub input: Input,
}

impl Request {
    /// What is chosen for the work: each choice stands until it is made anew.
    #[must_use]
    pub fn overrides(&self) -> Overrides {
        let Overrides { working_dir, env } = self.input.overrides.clone();
        let mut all = self.standing.env.clone();
        all.extend(env);
        let working_dir = working_dir.or_else(|| self.standing.working_dir.clone());
        Overrides { working_dir, env: all }
    }
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
