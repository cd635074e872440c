//! Accepted requests, in the types of the domain model.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::content::{Content, Part};
use super::hop::HopPosition;
use super::message_details::{MessageDetails, details_to_json};
use super::trace::TraceContext;
use crate::model::id::{AgentId, ContextId, ExecutionId, MessageId, PrincipalId, ScheduleId};

/// Trigger of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// Caller of the API.
    Api,
    /// Probe that checks whether the agent works.
    Probe,
    /// Planned time of a schedule.
    Schedule {
        /// Id of the schedule.
        id: ScheduleId,
        /// Planned time.
        planned: DateTime<Utc>,
    },
    /// Run of a team.
    Hop(HopPosition),
}

impl Trigger {
    /// Returns the published name.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Probe => "probe",
            Self::Schedule { .. } => "schedule",
            Self::Hop(_) => "hop",
        }
    }

    /// Returns the id of the schedule, if a schedule was the trigger.
    #[must_use]
    pub fn schedule_id(&self) -> Option<&str> {
        match self {
            Self::Api | Self::Probe | Self::Hop(_) => None,
            Self::Schedule { id, .. } => Some(id.as_str()),
        }
    }

    /// Returns the position in the run of a team, if such a run was the trigger.
    #[must_use]
    pub const fn hop_position(&self) -> Option<HopPosition> {
        match self {
            Self::Hop(position) => Some(*position),
            Self::Api | Self::Probe | Self::Schedule { .. } => None,
        }
    }
}

/// Overrides of one request, within the agent's override policy. They contain no secret: overrides that redaction would
/// change are rejected, so that the ledger can store them unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Overrides {
    /// Absolute path of the working folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Environment variables.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

impl Overrides {
    /// Returns true if nothing is overridden.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.working_dir.is_none() && self.env.is_empty()
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let env = self.env.iter().map(|(name, value)| name.len() + value.len());
        self.working_dir.as_ref().map_or(0, String::len) + env.sum::<usize>()
    }
}

/// Raw input. The ledger stores its plain form redacted; an input that redaction changes is also stored sealed.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Input {
    /// Parts of the message.
    pub parts: Vec<Part>,
    /// Values of `{{ param.x }}`.
    pub params: BTreeMap<String, String>,
    /// Overrides of the request.
    pub overrides: Overrides,
    /// Metadata and references of the message.
    pub details: MessageDetails,
}

impl fmt::Debug for Input {
    /// Writes sizes only: input may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Input({} parts, {} params)", self.parts.len(), self.params.len())
    }
}

impl Input {
    /// Creates a text input.
    #[must_use]
    pub fn from_text(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::text(text)], ..Self::default() }
    }

    /// Returns the text for the agent: its text and data parts, one per line. Files are passed as files.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match &part.content {
            Content::Text(text) => Some(text.clone()),
            Content::Data(data) => Some(data.to_string()),
            Content::Bytes(_) | Content::Url(_) => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Returns true if a part is a file.
    #[must_use]
    pub fn has_files(&self) -> bool {
        self.parts.iter().any(|part| part.content.is_file())
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let sizes = self.parts.iter().map(|part| match &part.content {
            Content::Text(text) | Content::Bytes(text) | Content::Url(text) => text.len(),
            Content::Data(data) => data.to_string().len(),
        });
        sizes.sum::<usize>() + self.overrides.size() + details_to_json(&self.details).len()
    }
}

/// Origin of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestOrigin {
    /// Principal that sends the request and owns the execution.
    pub owner: PrincipalId,
    /// Trigger of the request.
    pub trigger: Trigger,
    /// Trace context of the request; of a continued execution, the trace context of that execution.
    pub trace: Option<TraceContext>,
    /// Number of services that passed the request on before it arrived here; 0 if its first sender called this service.
    /// The ledger does not store it: an execution that starts again after a restart counts from 0.
    pub service_hops: u32,
}

impl RequestOrigin {
    /// Greatest number of services that may pass a request on, one after the other.
    pub const MAX_SERVICE_HOPS: u32 = 8;

    /// Returns the origin of a request that no other service passed on, without a trace.
    #[must_use]
    pub const fn for_direct_request(owner: PrincipalId, trigger: Trigger) -> Self {
        Self { owner, trigger, trace: None, service_hops: 0 }
    }
}

/// Authenticated and well-formed request to one agent.
#[derive(Debug, Clone)]
pub struct Request {
    /// Agent that receives the request.
    pub agent: AgentId,
    /// Origin of the request.
    pub origin: RequestOrigin,
    /// Message id of the caller.
    pub message_id: MessageId,
    /// Idempotency key of the caller, independent of the message id: its `Idempotency-Key`.
    pub idempotency_key: Option<String>,
    /// Conversation of the request.
    pub context: ContextId,
    /// True if the request starts the conversation.
    pub starts_context: bool,
    /// Execution that the request continues, because the execution requested input.
    pub continued_execution: Option<ExecutionId>,
    /// Overrides of the continued execution; they apply unless this request overrides them.
    pub inherited_overrides: Overrides,
    /// Raw input.
    pub input: Input,
}

impl Request {
    /// Returns the effective overrides: an earlier override applies until a request replaces it.
    #[must_use]
    pub fn effective_overrides(&self) -> Overrides {
        let Overrides { working_dir, env } = self.input.overrides.clone();
        let mut merged_env = self.inherited_overrides.env.clone();
        merged_env.extend(env);
        let working_dir = working_dir.or_else(|| self.inherited_overrides.working_dir.clone());
        Overrides { working_dir, env: merged_env }
    }
}

/// Deduplication keys of a request. Each key alone identifies the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DedupKeys {
    /// Key of (owner, agent, message).
    pub message_key: [u8; 32],
    /// Key of (owner, agent, idempotency key).
    pub idempotency_key: Option<[u8; 32]>,
}

impl DedupKeys {
    /// Iterates over the keys.
    pub fn iter(self) -> impl Iterator<Item = [u8; 32]> {
        std::iter::once(self.message_key).chain(self.idempotency_key)
    }
}

/// Keys of a request, with the digest of its content: the same key with another digest is a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestIdentity {
    /// Deduplication keys.
    pub dedup_keys: DedupKeys,
    /// Digest of the content.
    pub content_digest: [u8; 32],
}
