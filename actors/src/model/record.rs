//! The account of one execution, as the ledger holds it.

use chrono::{DateTime, Utc};

use super::agent::Access;
use super::execution::{Fence, Outcome, Stamp, State};
use super::failure::Failure;
use super::id::{AgentId, ContextId, ExecutionId, MessageId, PrincipalId};
use super::request::Trigger;

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
    /// Whether the stored input is the raw input, so that it can be run from the ledger.
    pub replayable: bool,
    /// Whether its question was answered and the next turn has not begun yet.
    pub answered: bool,
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
}

/// Which executions to list.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Of this agent only.
    pub agent: Option<AgentId>,
    /// Of this owner only.
    pub owner: Option<PrincipalId>,
    /// Only those that have not ended.
    pub unfinished: bool,
    /// Only those accepted before this one, for paging; newest first.
    pub before: Option<ExecutionId>,
    /// At most so many; 0 is no limit.
    pub limit: u32,
}
