//! Record of an execution, as stored in the ledger.

use chrono::{DateTime, Utc};

use super::request::{Overrides, RequestOrigin, Trigger};
use super::trace::TraceContext;
use super::{AttemptId, ExecutionState, Fence, Interruption, Outcome};
use crate::model::agent::Access;
use crate::model::agent::budget::Charge;
use crate::model::agent::quota::Deferral;
use crate::model::code::{Category, Code};
use crate::model::failure::Failure;
use crate::model::id::{AgentId, ContextId, ExecutionId, MessageId, PrincipalId};

/// Record of one execution: its request, its state and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionRecord {
    /// Id of the execution.
    pub id: ExecutionId,
    /// Id of the agent.
    pub agent: AgentId,
    /// Owner: the principal that sent the request.
    pub owner: PrincipalId,
    /// Message id of the caller.
    pub message_id: MessageId,
    /// Id of the conversation.
    pub context: ContextId,
    /// Trigger of the execution.
    pub trigger: Trigger,
    /// Access type of the agent.
    pub access: Access,
    /// State. The clean-up and the idle state after it do not hide the outcome: see `outcome`.
    pub state: ExecutionState,
    /// Outcome; `None` while the execution has not ended.
    pub outcome: Option<Outcome>,
    /// Failure, if the execution or its latest attempt failed.
    pub failure: Option<Failure>,
    /// Id of the latest attempt.
    pub attempt_id: AttemptId,
    /// Generation of the claim.
    pub fence: Fence,
    /// Redacted parameters of the request.
    pub params: std::collections::BTreeMap<String, String>,
    /// Trace context of the first request.
    pub trace: Option<TraceContext>,
    /// Overrides of the latest request.
    pub overrides: Overrides,
    /// True if the stored input is the raw input, so that the execution can be run from the ledger.
    pub stores_raw_input: bool,
    /// Input that the execution has requested from people.
    pub requested_input: RequestedInput,
    /// Latest deferral in this turn; see [`ExecutionRecord::deferral`] for the execution that is deferred now.
    pub latest_deferral: Option<Deferral>,
    /// Amounts that the execution has used so far.
    pub spent: Charge,
    /// Time of acceptance.
    pub accepted_at: DateTime<Utc>,
    /// Start time of the first attempt.
    pub started_at: Option<DateTime<Utc>>,
    /// Time of the latest state change.
    pub changed_at: DateTime<Utc>,
    /// End time.
    pub ended_at: Option<DateTime<Utc>>,
    /// Process id of the latest process.
    pub pid: Option<u32>,
    /// Exit code of the latest process.
    pub exit_code: Option<i32>,
    /// Number of the latest event.
    pub last_event_number: u64,
}

/// Input that an execution has requested from people: by interactions of its running process, or between two turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestedInput {
    /// Number of open interactions: questions for whose answers the running process waits.
    pub open_interaction_count: u32,
    /// True if the agent's question was answered and the next turn has not started yet.
    pub has_pending_turn: bool,
    /// Reason of the latest wait for the caller, also after its answer; `None` if it never waited.
    pub latest_required_input: Option<Interruption>,
}

impl ExecutionRecord {
    /// Returns the origin of the request, as far as the ledger stores it.
    #[must_use]
    pub fn origin(&self) -> RequestOrigin {
        let direct = RequestOrigin::for_direct_request(self.owner, self.trigger.clone());
        RequestOrigin { trace: self.trace.clone(), ..direct }
    }

    /// Returns true if the execution waits for an answer to its question.
    #[must_use]
    pub const fn awaits_answer(&self) -> bool {
        matches!(self.state, ExecutionState::Waiting)
            && self.outcome.is_none()
            && !self.requested_input.has_pending_turn
    }

    /// Returns true if a running process waits for the answer to an interaction.
    #[must_use]
    pub const fn has_open_interactions(&self) -> bool {
        matches!(self.state, ExecutionState::Running)
            && self.outcome.is_none()
            && self.requested_input.open_interaction_count > 0
    }

    /// Returns the state that callers see: the final state after the end, else the present state. A deferred execution
    /// shows `waiting`, because its attempt has failed and the execution has not ended.
    #[must_use]
    pub fn effective_state(&self) -> ExecutionState {
        let present_state =
            if self.deferral().is_some() { ExecutionState::Waiting } else { self.state };
        self.outcome.map_or(present_state, Outcome::state)
    }

    /// Returns the public state, which hides attempts, retries and the clean-up from the caller.
    #[must_use]
    pub fn public_state(&self) -> PublicState {
        match (self.outcome, self.state) {
            (Some(Outcome::Completed), _) => PublicState::Completed,
            (Some(Outcome::Cancelled), _) => PublicState::Canceled,
            (Some(Outcome::Timeout), _) => PublicState::Failed,
            (Some(Outcome::Failed), _) if self.was_rejected() => PublicState::Rejected,
            (Some(Outcome::Failed), _) => PublicState::Failed,
            (None, ExecutionState::Idle) => PublicState::Submitted,
            (None, ExecutionState::Running) if self.requested_input.open_interaction_count > 0 => {
                PublicState::InputRequired
            }
            (None, ExecutionState::Waiting) if !self.requested_input.has_pending_turn => {
                match self.requested_input.latest_required_input {
                    Some(Interruption::AuthRequired) => PublicState::AuthRequired,
                    Some(Interruption::InputRequired) | None => PublicState::InputRequired,
                }
            }
            // `Failed` without an outcome waits for a retry: callers see work, not attempts.
            (
                None,
                ExecutionState::Starting
                | ExecutionState::Running
                | ExecutionState::Waiting
                | ExecutionState::Completed
                | ExecutionState::Failed
                | ExecutionState::Timeout
                | ExecutionState::Cancelled
                | ExecutionState::Cleanup,
            ) => PublicState::Working,
        }
    }

    /// Returns the deferral if the execution waits for the quota of its account.
    #[must_use]
    pub fn deferral(&self) -> Option<Deferral> {
        let is_between_attempts = self.outcome.is_none() && self.state == ExecutionState::Failed;
        // An execution that was deferred before an earlier attempt is in an ordinary retry pause.
        self.latest_deferral
            .filter(|deferred| is_between_attempts && deferred.attempt == self.attempt_id.attempt)
    }

    /// Returns true if the agent rejected the work, or the execution never started.
    fn was_rejected(&self) -> bool {
        let code = self.failure.as_ref().map(|failure| failure.code);
        matches!(code, Some(Code::QueueTimeout | Code::Rejected))
    }

    /// Returns the reason why the execution waits for its caller; `None` while it does not wait.
    #[must_use]
    pub fn required_input(&self) -> Option<Interruption> {
        match self.public_state() {
            PublicState::InputRequired => Some(Interruption::InputRequired),
            PublicState::AuthRequired => Some(Interruption::AuthRequired),
            PublicState::Submitted
            | PublicState::Working
            | PublicState::Completed
            | PublicState::Canceled
            | PublicState::Failed
            | PublicState::Rejected => None,
        }
    }

    /// Returns the time of the latest status change. The clean-up after the end does not count.
    #[must_use]
    pub fn status_changed_at(&self) -> DateTime<Utc> {
        self.ended_at.unwrap_or(self.changed_at)
    }
}

/// Public state of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PublicState {
    /// The execution is accepted and has not started.
    Submitted,
    /// The execution is in progress.
    Working,
    /// The agent requests input.
    InputRequired,
    /// The agent needs the caller to authenticate.
    AuthRequired,
    /// The execution succeeded.
    Completed,
    /// The execution was cancelled.
    Canceled,
    /// The execution failed.
    Failed,
    /// The agent rejected the work, or the execution never started.
    Rejected,
}

impl PublicState {
    /// Every public state.
    pub const ALL: &[Self] = &[
        Self::Submitted,
        Self::Working,
        Self::InputRequired,
        Self::AuthRequired,
        Self::Completed,
        Self::Canceled,
        Self::Failed,
        Self::Rejected,
    ];

    /// Returns the name that the ledger stores.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Working => "working",
            Self::InputRequired => "input-required",
            Self::AuthRequired => "auth-required",
            Self::Completed => "completed",
            Self::Canceled => "canceled",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
        }
    }
}

/// Prefix or suffix of an execution id, as typed by a person: hexadecimal digits in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionIdFragment(String);

impl ExecutionIdFragment {
    /// Minimum number of digits: fewer digits would match too many ids by chance.
    pub const MIN_DIGITS: usize = 4;

    /// Parses a part of an id, with or without its hyphens.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|char| *char != '-').collect();
        let has_valid_length = (Self::MIN_DIGITS..=32).contains(&digits.len());
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        (has_valid_length && is_hex).then(|| Self(digits.to_ascii_lowercase()))
    }

    /// Returns true if an id starts or ends with these digits.
    #[must_use]
    pub fn matches(&self, id: ExecutionId) -> bool {
        let digits = id.0.simple().to_string();
        digits.starts_with(&self.0) || digits.ends_with(&self.0)
    }

    /// Returns the digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Filter for a list of executions.
#[derive(Debug, Clone, Default)]
pub struct ExecutionFilter {
    /// Restricts the list to this agent.
    pub agent: Option<AgentId>,
    /// Restricts the list to ids that start or end with this part.
    pub id_fragment: Option<ExecutionIdFragment>,
    /// Restricts the list to these agents.
    pub agents: Option<Vec<AgentId>>,
    /// Restricts the list to this owner.
    pub owner: Option<PrincipalId>,
    /// Restricts the list to the owner with this name.
    pub owner_name: Option<String>,
    /// True to restrict the list to executions that have not ended.
    pub unfinished_only: bool,
    /// Restricts the list to executions that show this state: see [`ExecutionRecord::effective_state`].
    pub state: Option<ExecutionState>,
    /// Restricts the list to this outcome.
    pub outcome: Option<Outcome>,
    /// Restricts the list to failures with this code.
    pub code: Option<Code>,
    /// Restricts the list to failures of this category.
    pub category: Option<Category>,
    /// Restricts the list to this trigger.
    pub trigger: Option<TriggerFilter>,
    /// Restricts the list to executions of this schedule.
    pub schedule: Option<String>,
    /// Restricts the list to this conversation.
    pub context: Option<ContextId>,
    /// Restricts the list to executions accepted at this time or later.
    pub since: Option<DateTime<Utc>>,
    /// Restricts the list to executions accepted before this time.
    pub until: Option<DateTime<Utc>>,
    /// Restricts the list to executions accepted before this one, for paging; newest first.
    pub before_id: Option<ExecutionId>,
    /// Maximum number of results; 0 is unlimited.
    pub limit: u32,
}

impl ExecutionFilter {
    /// Returns true if a record matches the filter; the owner's name and the limit are not checked.
    #[must_use]
    pub fn matches(&self, record: &ExecutionRecord) -> bool {
        let code = record.failure.as_ref().map(|failure| failure.code);
        self.agent.as_ref().is_none_or(|agent| record.agent == *agent)
            && self.id_fragment.as_ref().is_none_or(|part| part.matches(record.id))
            && self.agents.as_ref().is_none_or(|agents| agents.contains(&record.agent))
            && self.owner.is_none_or(|owner| record.owner == owner)
            && !(self.unfinished_only && record.outcome.is_some())
            && self.state.is_none_or(|state| record.effective_state() == state)
            && self.outcome.is_none_or(|outcome| record.outcome == Some(outcome))
            && self.code.is_none_or(|expected| code == Some(expected))
            && self.category.is_none_or(|expected| code.map(Code::category) == Some(expected))
            && self.trigger.as_ref().is_none_or(|filter| filter.matches(&record.trigger))
            && self.schedule.as_deref().is_none_or(|id| record.trigger.schedule_id() == Some(id))
            && self.context.as_ref().is_none_or(|context| record.context == *context)
            && self.since.is_none_or(|since| record.accepted_at >= since)
            && self.until.is_none_or(|until| record.accepted_at < until)
            && self.before_id.is_none_or(|before| record.id < before)
    }
}

/// Filter for the trigger of executions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriggerFilter {
    /// Triggers of this kind: see [`Trigger::kind`].
    Kind(String),
    /// The hops of this run.
    HopsOf(ExecutionId),
}

impl TriggerFilter {
    fn matches(&self, trigger: &Trigger) -> bool {
        match self {
            Self::Kind(kind) => trigger.kind() == kind,
            Self::HopsOf(run) => trigger.hop_position().is_some_and(|hop| hop.parent == *run),
        }
    }
}

/// Query for a page of executions of one agent, the latest status change first.
///
/// A reader that continues after the last record of each page meets every execution exactly once whose status does not
/// change meanwhile; an execution whose status changes moves to the front, behind the reader.
#[derive(Debug, Clone)]
pub struct ExecutionPageQuery {
    /// Restricts the page to this owner.
    pub owner: Option<PrincipalId>,
    /// Agent of the executions.
    pub agent: AgentId,
    /// Restricts the page to this conversation.
    pub context: Option<ContextId>,
    /// Restricts the page to this public state.
    pub public_state: Option<PublicState>,
    /// Restricts the page to status changes at this time or later.
    pub changed_since: Option<DateTime<Utc>>,
    /// Restricts the page to executions after this one: its status time, as it was read, and its id.
    pub after: Option<(DateTime<Utc>, ExecutionId)>,
    /// Maximum number of results.
    pub limit: u32,
}

/// Page of executions, as they are at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExecutionPage {
    /// Executions of the page.
    pub records: Vec<ExecutionRecord>,
    /// Number of matching executions on all pages.
    pub total: u64,
}
