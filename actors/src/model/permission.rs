//! Permission policy of an agent: rules about tool calls, and the conditions of approvals.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::{AgentId, AttemptId, ExecutionId, PrincipalId};
use super::interaction::{AnswerSource, ApproverRules, InteractionId};

/// Verdict about a tool call.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum PermissionVerdict {
    /// The call is allowed.
    Allow,
    /// The call is denied.
    Deny,
    /// A person decides.
    Ask,
}

impl PermissionVerdict {
    /// Every verdict.
    pub const ALL: &[Self] = &[Self::Allow, Self::Deny, Self::Ask];

    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Ask => "ask",
        }
    }

    /// Parses the published name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|verdict| verdict.as_str() == word)
    }
}

/// Rule about tool calls. A condition without patterns fits every call; all conditions must fit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PermissionRule {
    /// Patterns of the tool's name.
    pub tool_patterns: Vec<String>,
    /// Kinds of the tool, such as `execute`.
    pub tool_kinds: Vec<String>,
    /// Patterns of the command line. For `allow` the command line must be one simple command.
    pub command_patterns: Vec<String>,
    /// Patterns of the paths. For `allow` all paths of the call must fit and be known.
    pub path_patterns: Vec<String>,
    /// Verdict of the rule.
    pub verdict: Option<PermissionVerdict>,
}

/// Consequence of a call that the agent made without permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnauthorizedCallAction {
    /// Reports the call, and stops the turn.
    #[default]
    Stop,
    /// Reports the call.
    Report,
}

/// Consequence of an interaction that nobody answers in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeoutAction {
    /// Denies the call; the turn continues.
    #[default]
    Deny,
    /// Cancels the turn.
    Cancel,
}

/// Permission policy of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionPolicy {
    /// Rules in their order; the first that fits decides.
    pub rules: Vec<PermissionRule>,
    /// Verdicts by tool name, applied after the rules: deny before ask before allow, longest pattern first.
    pub tool_verdicts: BTreeMap<String, PermissionVerdict>,
    /// Verdict of a call that no rule fits.
    pub default_verdict: PermissionVerdict,
    /// Time after which an interaction expires.
    pub interaction_timeout: Duration,
    /// Consequence of an expired interaction.
    pub on_timeout: TimeoutAction,
    /// Consequence of a call without permission.
    pub on_unauthorized: UnauthorizedCallAction,
    /// Conditions of an answer by a person.
    pub approver_rules: ApproverRules,
    /// Greatest number of tool calls in a turn; `None` is unlimited.
    pub max_tool_calls: Option<u32>,
}

impl Default for PermissionPolicy {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            tool_verdicts: BTreeMap::new(),
            default_verdict: PermissionVerdict::Ask,
            interaction_timeout: Duration::from_secs(300),
            on_timeout: TimeoutAction::Deny,
            on_unauthorized: UnauthorizedCallAction::Stop,
            approver_rules: ApproverRules {
                approvers: vec![OWNER_APPROVER.to_owned()],
                four_eyes: false,
            },
            max_tool_calls: None,
        }
    }
}

/// Word for the owner of the execution among the approvers.
pub const OWNER_APPROVER: &str = "owner";

/// Record of a verdict about a tool call. The list of decisions is append-only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionDecision {
    /// Time of the verdict.
    pub at: DateTime<Utc>,
    /// Agent that requested the call.
    pub agent: AgentId,
    /// Owner of the execution.
    pub owner: PrincipalId,
    /// Execution of the call.
    pub execution: ExecutionId,
    /// Attempt of the call.
    pub attempt_id: AttemptId,
    /// Interaction, if a person was asked.
    pub interaction: Option<InteractionId>,
    /// Name of the tool.
    pub tool: String,
    /// Keyed digest of the tool and its arguments.
    pub tool_call_digest: String,
    /// Verdict; `Ask` never.
    pub verdict: PermissionVerdict,
    /// Origin of the verdict.
    pub source: AnswerSource,
    /// Milliseconds from the request of the agent to the verdict.
    pub waited_ms: u64,
}

/// Filter for a list of decisions.
#[derive(Debug, Clone, Default)]
pub struct DecisionFilter {
    /// Restricts the list to this agent.
    pub agent: Option<AgentId>,
    /// Restricts the list to this execution.
    pub execution: Option<ExecutionId>,
    /// Restricts the list to decisions after this number; oldest first.
    pub after: u64,
    /// Maximum number of results; 0 is unlimited.
    pub limit: u32,
}
