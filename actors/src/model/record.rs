//! The account of one execution, as the ledger holds it.

use chrono::{DateTime, Utc};

use super::agent::Access;
use super::budget::Charge;
use super::code::{Category, Code};
use super::execution::{Fence, Outcome, Stamp, State};
use super::failure::Failure;
use super::id::{AgentId, ContextId, ExecutionId, MessageId, PrincipalId};
use super::quota::Parked;
use super::request::{Overrides, Trigger};
use super::trace::Trace;

/// One execution: what was asked, where it is, how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its id.
    pub id: ExecutionId,
    /// Who was asked.
    pub agent: AgentId,
    /// Who asked.
    pub owner: PrincipalId,
    /// The caller's id of the message.
    pub message: MessageId,
    /// The conversation.
    pub context: ContextId,
    /// What made it.
    pub trigger: Trigger,
    /// Whether its agent changes things.
    pub access: Access,
    /// Where it is. Cleanup and the rest after it do not hide how it ended: see `outcome`.
    pub state: State,
    /// How it ended; `None` while it has not.
    pub outcome: Option<Outcome>,
    /// Why it did not work.
    pub failure: Option<Failure>,
    /// The latest attempt.
    pub stamp: Stamp,
    /// The generation of its claim.
    pub fence: Fence,
    /// Redacted parameters of the request.
    pub params: std::collections::BTreeMap<String, String>,
    /// Where in a trace it was asked, when it was asked first.
    pub trace: Option<Trace>,
    /// What the caller chose for its latest request.
    pub overrides: Overrides,
    /// Whether the stored input is the raw input, so that it can be run from the ledger.
    pub replayable: bool,
    /// Whether its question was answered and the next turn has not begun yet.
    pub answered: bool,
    /// How it was parked last in this turn; it is so still while it is between two attempts.
    pub parked: Option<Parked>,
    /// What it has used up so far.
    pub spent: Charge,
    /// When it was accepted.
    pub accepted_at: DateTime<Utc>,
    /// When its first attempt started.
    pub started_at: Option<DateTime<Utc>>,
    /// When its state last changed.
    pub changed_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
    /// The latest process.
    pub pid: Option<u32>,
    /// The latest exit code.
    pub exit_code: Option<i32>,
    /// The number of its latest event.
    pub last_event: u64,
}

impl Record {
    /// The state that callers see: how it ended, once it has; where it is, before.
    #[must_use]
    pub fn shown(&self) -> State {
        self.outcome.map_or(self.state, Outcome::state)
    }

    /// The public state: attempts, retries and the clean-up are none of the caller's.
    #[must_use]
    pub fn shown_state(&self) -> Shown {
        match (self.outcome, self.state) {
            (Some(Outcome::Completed), _) => Shown::Completed,
            (Some(Outcome::Cancelled), _) => Shown::Canceled,
            (Some(Outcome::Timeout), _) => Shown::Failed,
            (Some(Outcome::Failed), _) if self.was_rejected() => Shown::Rejected,
            (Some(Outcome::Failed), _) => Shown::Failed,
            (None, State::Idle) => Shown::Submitted,
            (None, State::Waiting) if !self.answered => Shown::InputRequired,
            // Failed without an outcome waits for a retry: callers see work, not attempts.
            (
                None,
                State::Starting
                | State::Running
                | State::Waiting
                | State::Completed
                | State::Failed
                | State::Timeout
                | State::Cancelled
                | State::Cleanup,
            ) => Shown::Working,
        }
    }

    /// Whether it waits for the quota of its account.
    #[must_use]
    pub fn is_parked(&self) -> Option<Parked> {
        let is_between = self.outcome.is_none() && self.state == State::Failed;
        // One that was parked before an earlier attempt is in an ordinary pause.
        self.parked.filter(|parked| is_between && parked.attempt == self.stamp.attempt)
    }

    /// Refused by the agent itself, or never begun.
    fn was_rejected(&self) -> bool {
        let code = self.failure.as_ref().map(|failure| failure.code);
        matches!(code, Some(Code::QueueTimeout | Code::Rejected))
    }

    /// Since when it is where it is. What is done after the end does not count.
    #[must_use]
    pub fn status_at(&self) -> DateTime<Utc> {
        self.ended_at.unwrap_or(self.changed_at)
    }
}

/// The public states of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shown {
    /// Accepted, not begun.
    Submitted,
    /// Under way.
    Working,
    /// Asks for input.
    InputRequired,
    /// Ended well.
    Completed,
    /// Called off.
    Canceled,
    /// Ended badly.
    Failed,
    /// Refused by the agent itself, or never begun.
    Rejected,
}

impl Shown {
    /// Every public state.
    pub const ALL: &[Self] = &[
        Self::Submitted,
        Self::Working,
        Self::InputRequired,
        Self::Completed,
        Self::Canceled,
        Self::Failed,
        Self::Rejected,
    ];

    /// The word that a ledger stores and looks for.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Working => "working",
            Self::InputRequired => "input-required",
            Self::Completed => "completed",
            Self::Canceled => "canceled",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
        }
    }
}

/// Which executions to list.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Of this agent only.
    pub agent: Option<AgentId>,
    /// Of these agents only.
    pub agents: Option<Vec<AgentId>>,
    /// Of this owner only.
    pub owner: Option<PrincipalId>,
    /// Of the owner of this name only.
    pub caller: Option<String>,
    /// Only those that have not ended.
    pub unfinished: bool,
    /// Only those that show this state: see [`Record::shown`].
    pub state: Option<State>,
    /// Only those that ended so.
    pub outcome: Option<Outcome>,
    /// Only those that did not work for this reason.
    pub code: Option<Code>,
    /// Only those that did not work for a reason of this category.
    pub category: Option<Category>,
    /// Only those that were made by this kind of trigger: see [`Trigger::kind`].
    pub trigger: Option<String>,
    /// Only those that this schedule made.
    pub schedule: Option<String>,
    /// Of this conversation only.
    pub context: Option<ContextId>,
    /// Only those accepted then or later.
    pub since: Option<DateTime<Utc>>,
    /// Only those accepted before.
    pub until: Option<DateTime<Utc>>,
    /// Only those accepted before this one, for paging; newest first.
    pub before: Option<ExecutionId>,
    /// At most so many; 0 is no limit.
    pub limit: u32,
}

impl Filter {
    /// Whether a record is one of those, but for what names of owners tell and for the limit.
    #[must_use]
    pub fn fits(&self, record: &Record) -> bool {
        let code = record.failure.as_ref().map(|failure| failure.code);
        self.agent.as_ref().is_none_or(|agent| record.agent == *agent)
            && self.agents.as_ref().is_none_or(|agents| agents.contains(&record.agent))
            && self.owner.is_none_or(|owner| record.owner == owner)
            && !(self.unfinished && record.outcome.is_some())
            && self.state.is_none_or(|state| record.shown() == state)
            && self.outcome.is_none_or(|outcome| record.outcome == Some(outcome))
            && self.code.is_none_or(|wanted| code == Some(wanted))
            && self.category.is_none_or(|wanted| code.map(Code::category) == Some(wanted))
            && self.trigger.as_ref().is_none_or(|kind| record.trigger.kind() == kind)
            && self.schedule.as_deref().is_none_or(|id| record.trigger.schedule() == Some(id))
            && self.context.as_ref().is_none_or(|context| record.context == *context)
            && self.since.is_none_or(|since| record.accepted_at >= since)
            && self.until.is_none_or(|until| record.accepted_at < until)
            && self.before.is_none_or(|before| record.id < before)
    }
}

/// Which executions of one agent to list, the one whose status changed last first.
///
/// Whoever goes on after the last of each page meets every execution exactly once whose status
/// does not change meanwhile; one whose status does moves to the front, behind the reader.
#[derive(Debug, Clone)]
pub struct PageQuery {
    /// Of this owner only.
    pub owner: Option<PrincipalId>,
    /// Of this agent only.
    pub agent: AgentId,
    /// Of this conversation only.
    pub context: Option<ContextId>,
    /// In this public state only.
    pub shown: Option<Shown>,
    /// Only those whose status is of this time or later.
    pub changed_since: Option<DateTime<Utc>>,
    /// Only those after this one: its status time, as it was read, and its id.
    pub after: Option<(DateTime<Utc>, ExecutionId)>,
    /// At most so many.
    pub limit: u32,
}

/// A page of executions, as they are at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The executions.
    pub records: Vec<Record>,
    /// How many fit, on all pages.
    pub total: u64,
}
