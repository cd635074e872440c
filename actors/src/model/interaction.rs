//! Interactions: questions of an agent to a person, each with at most one answer.

mod answer;
mod question;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::answer::{AnswerSource, AnswerValue, InteractionAnswer, InteractionEnd};
pub use self::question::{
    OptionKind, Question, QuestionKind, QuestionOption, ToolCallSubject, WireId,
};
use super::id::{AgentId, AttemptId, ContextId, ExecutionId, PrincipalId};

/// Id of an interaction: a version 7 UUID, so that ids sort by the time of the question.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct InteractionId(pub Uuid);

impl InteractionId {
    /// Creates a new id.
    #[must_use]
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }

    /// Parses an id as written by a caller.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Uuid::parse_str(text).ok().map(Self)
    }
}

impl std::fmt::Display for InteractionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.0, f)
    }
}

/// State of an interaction. It leaves `open` once, by one compare-and-set in the ledger.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum InteractionState {
    /// The agent waits for an answer.
    Open,
    /// Somebody, or a rule, answered.
    Answered,
    /// Nobody answered in time.
    Expired,
    /// The agent or the end of its turn withdrew the question.
    Withdrawn,
    /// The process that asked has ended without an answer.
    Lost,
}

impl InteractionState {
    /// Every state.
    pub const ALL: &[Self] =
        &[Self::Open, Self::Answered, Self::Expired, Self::Withdrawn, Self::Lost];

    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Answered => "answered",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Lost => "lost",
        }
    }

    /// Parses the published name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|state| state.as_str() == word)
    }
}

/// Place of an interaction: the request of an agent that asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InteractionRequestKey {
    /// Execution whose agent asked.
    pub execution: ExecutionId,
    /// Attempt that asked.
    pub attempt_id: AttemptId,
    /// Id of the request in the agent's protocol. A replay of the protocol finds the same interaction by it.
    pub wire_id: WireId,
}

/// Owner of an interaction and the objects to which it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InteractionOrigin {
    /// Owner of the execution.
    pub owner: PrincipalId,
    /// Agent that asked.
    pub agent: AgentId,
    /// Conversation of the execution.
    pub context: ContextId,
    /// Teams whose runs passed the request on to the agent, the outermost first. The store determines them.
    pub teams: Vec<AgentId>,
}

impl InteractionOrigin {
    /// Returns the teams from the first one that fits: a caller does not learn of the teams outside.
    pub fn teams_from_first_match(&self, fits: impl Fn(&AgentId) -> bool) -> Vec<AgentId> {
        self.teams.iter().skip_while(|team| !fits(team)).cloned().collect()
    }

    /// Returns the agents through which the question reaches a caller: the teams, then the agent that opened it.
    pub fn agent_path(&self) -> impl Iterator<Item = &AgentId> {
        self.teams.iter().chain([&self.agent])
    }
}

/// Conditions of an answer by a person. They are those of the policy at the time of the question.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ApproverRules {
    /// Names of the principals that may answer beside administrators; `owner` stands for the owner of the execution.
    pub approvers: Vec<String>,
    /// True if the owner of the execution may not answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub four_eyes: bool,
}

/// Interaction as the ledger stores it. All its text is redacted.
#[derive(Debug, Clone, PartialEq)]
pub struct Interaction {
    /// Id of the interaction.
    pub id: InteractionId,
    /// Request of the agent.
    pub request_key: InteractionRequestKey,
    /// Owner of the interaction.
    pub origin: InteractionOrigin,
    /// Question of the agent.
    pub question: Question,
    /// Conditions of an answer by a person.
    pub approver_rules: ApproverRules,
    /// Keyed digest of the tool and its arguments as the agent wrote them. An approval binds to it.
    pub tool_call_digest: String,
    /// Time of the question.
    pub opened_at: DateTime<Utc>,
    /// Time at which the interaction expires.
    pub due_at: DateTime<Utc>,
    /// State of the interaction.
    pub state: InteractionState,
    /// Answer or end; `None` while the interaction is open.
    pub end: Option<InteractionEnd>,
    /// Time at which the answer was written to the agent.
    pub delivered_at: Option<DateTime<Utc>>,
}

impl Interaction {
    /// Returns true while the agent waits for an answer.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self.state, InteractionState::Open)
    }
}

/// Filter for a list of interactions.
#[derive(Debug, Clone, Default)]
pub struct InteractionFilter {
    /// Restricts the list to this interaction.
    pub id: Option<InteractionId>,
    /// Restricts the list to this owner.
    pub owner: Option<PrincipalId>,
    /// Restricts the list to questions of these agents, and of the members of these teams in their runs.
    pub agents: Option<Vec<AgentId>>,
    /// Restricts the list to this execution, and to the executions that it sent on as the run of a team.
    pub execution: Option<ExecutionId>,
    /// Restricts the list to this state.
    pub state: Option<InteractionState>,
    /// Restricts the list to interactions before this one, for paging; newest first.
    pub before_id: Option<InteractionId>,
    /// Maximum number of results; 0 is unlimited.
    pub limit: u32,
}
