//! Ledger: the durable record of every accepted execution, its transitions, events, text and outcome.
//!
//! An implementation commits before it returns. A call with a [`Fence`] changes nothing if the execution was claimed
//! again or settled since; only the transitions into and out of the clean-up are still recorded after the end.

mod error;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, Utc};

use crate::model::access::principal::{NewToken, Token};
use crate::model::agent::Access;
use crate::model::agent::budget::Charge;
use crate::model::agent::queue::QueueReason;
use crate::model::agent::workspace::Workspace;
use crate::model::execution::event::{Event, EventKind, TextChunk, TextRange};
use crate::model::execution::message_details::StoredContent;
use crate::model::execution::record::{
    ExecutionFilter, ExecutionPage, ExecutionPageQuery, ExecutionRecord,
};
use crate::model::execution::request::{DedupKeys, Overrides, Trigger};
use crate::model::execution::trace::TraceContext;
use crate::model::execution::{AttemptId, Fence, Outcome, StateChange};
use crate::model::failure::Failure;
use crate::model::id::{AgentId, ContextId, ExecutionId, MessageId, PrincipalId};

pub use self::error::LedgerError;

/// Request to be accepted. All its text is redacted.
#[derive(Debug, Clone)]
pub struct AcceptCommand {
    /// Id of the new execution.
    pub id: ExecutionId,
    /// Agent that receives the request.
    pub agent: AgentId,
    /// Owner: the principal that sends the request.
    pub owner: PrincipalId,
    /// Message id of the caller.
    pub message_id: MessageId,
    /// Deduplication keys: the same key identifies the same execution.
    pub keys: DedupKeys,
    /// Digest of the content: a request with the same key and another digest is rejected.
    pub content_digest: [u8; 32],
    /// Key of the content, and the time since when an equal request may share its result; `None` disables coalescing.
    pub coalescing_key_and_since: Option<([u8; 32], DateTime<Utc>)>,
    /// Id of the conversation.
    pub context: ContextId,
    /// Trigger of the request.
    pub trigger: Trigger,
    /// Trace context of the request.
    pub trace: Option<TraceContext>,
    /// Access type of the agent.
    pub access: Access,
    /// Redacted text of all parts of the input.
    pub input_text: String,
    /// Content of the message.
    pub content: StoredContent,
    /// Redacted parameters.
    pub params: BTreeMap<String, String>,
    /// Overrides of the caller.
    pub overrides: Overrides,
    /// True if redaction left the input unchanged.
    pub stores_raw_input: bool,
    /// Raw input in encrypted form, if redaction changed it.
    pub sealed_input: Option<Vec<u8>>,
    /// Time of acceptance.
    pub at: DateTime<Utc>,
}

impl AcceptCommand {
    /// Returns the key of the content, and the time range in which an equal request must have been accepted to share
    /// its result. A request accepted long after now was accepted before the clock was set back, so its age is unknown.
    #[must_use]
    pub fn coalescing_key_and_window(&self) -> Option<([u8; 32], DateTime<Utc>, DateTime<Utc>)> {
        let (key, since) = self.coalescing_key_and_since?;
        Some((key, since, self.at.checked_add_signed(self.at - since)?))
    }
}

/// Answer to a question of the agent. All its text is redacted.
#[derive(Debug, Clone)]
pub struct AnswerCommand {
    /// Execution that waits for the answer.
    pub id: ExecutionId,
    /// Agent of the execution.
    pub agent: AgentId,
    /// Principal that answers; the owner of the execution.
    pub owner: PrincipalId,
    /// Generation of the claim that the answering actor knows.
    pub fence: Fence,
    /// Turn that the answer starts.
    pub next_attempt_id: AttemptId,
    /// Message id of the caller.
    pub message_id: MessageId,
    /// Deduplication keys.
    pub keys: DedupKeys,
    /// Digest of the content.
    pub content_digest: [u8; 32],
    /// Redacted text of all parts.
    pub input_text: String,
    /// Content of the message.
    pub content: StoredContent,
    /// Redacted parameters.
    pub params: BTreeMap<String, String>,
    /// Overrides of the caller.
    pub overrides: Overrides,
    /// True if redaction left the answer unchanged.
    pub stores_raw_input: bool,
    /// Raw answer in encrypted form, if redaction changed it. It replaces the input of the previous turn.
    pub sealed_input: Option<Vec<u8>>,
    /// Time of the answer.
    pub at: DateTime<Utc>,
}

/// Result of an [`AcceptCommand`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptResult {
    /// The request became a new row.
    Created,
    /// The request became a new row, and this execution of the same caller has the same content: it has completed since
    /// the given time, or is in progress.
    CreatedWithEquivalent(ExecutionId),
    /// The same request was accepted before, as this execution.
    Duplicate(ExecutionId),
    /// The same key was accepted before with another digest.
    Conflict,
}

impl AcceptResult {
    /// Returns the result for a request whose keys identify these executions, each with the digest of its content;
    /// `None` if no key is known. Keys that identify two executions are a conflict.
    #[must_use]
    pub fn for_known_keys(
        known_executions: &[(ExecutionId, [u8; 32])],
        digest: [u8; 32],
    ) -> Option<Self> {
        let (first, _) = known_executions.first()?;
        let is_same = known_executions
            .iter()
            .all(|(id, known_digest)| id == first && *known_digest == digest);
        Some(if is_same { Self::Duplicate(*first) } else { Self::Conflict })
    }
}

/// Request to start an attempt.
#[derive(Debug, Clone)]
pub struct ClaimCommand {
    /// Id of the execution.
    pub id: ExecutionId,
    /// Agent of the execution.
    pub agent: AgentId,
    /// Maximum number of the agent's executions that hold a slot; `None` is unlimited.
    pub max_running: Option<u32>,
    /// Folder that the execution modifies, if any. While it starts or runs, the ledger grants no claim on an
    /// overlapping folder, for any agent.
    pub workspace: Option<Workspace>,
    /// True if the messages of a conversation run one after the other: the claim waits for every earlier message of the
    /// same owner, agent and context that has a turn or waits for one.
    pub runs_turns_in_order: bool,
    /// Generation of the claim that the caller knows.
    pub fence: Fence,
    /// Transition to `Starting`.
    pub state_change: StateChange,
}

/// Result of a [`ClaimCommand`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimResult {
    /// The slot is held under this new generation.
    Granted(Fence),
    /// A required resource is in use; try again later.
    Busy(QueueReason),
    /// Another actor has settled or claimed the execution.
    Superseded,
}

/// Batch of text and events of an execution, written in one transaction.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WriteBatch {
    /// Redacted text, to which the events may refer.
    pub chunks: Vec<TextChunk>,
    /// Events in their order, each with its time.
    pub events: Vec<(DateTime<Utc>, EventKind)>,
}

impl WriteBatch {
    /// Creates a batch of transitions, each at its time.
    #[must_use]
    pub fn from_transitions(changes: impl IntoIterator<Item = StateChange>) -> Self {
        let events = changes.into_iter().map(|change| (change.at, EventKind::StateChanged(change)));
        Self { chunks: Vec::new(), events: events.collect() }
    }

    /// Returns true if there is nothing to write.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.events.is_empty()
    }

    /// Appends a later batch.
    pub fn extend(&mut self, later: Self) {
        self.chunks.extend(later.chunks);
        self.events.extend(later.events);
    }
}

/// End of an execution.
#[derive(Debug, Clone)]
pub struct Settlement {
    /// Id of the execution.
    pub id: ExecutionId,
    /// Generation under which the execution ran; the last known one for an execution that never ran.
    pub fence: Fence,
    /// Id of the latest attempt.
    pub attempt_id: AttemptId,
    /// Outcome of the execution.
    pub outcome: Outcome,
    /// Failure, if the execution failed.
    pub failure: Option<Failure>,
    /// Exit code of the last process.
    pub exit_code: Option<i32>,
    /// Last text and events of the execution, with the transitions that lead to the end.
    pub batch: WriteBatch,
    /// True if the sealed input stays for a retry, until [`History::erase_sealed_inputs`]; otherwise it is erased.
    ///
    /// [`History::erase_sealed_inputs`]: crate::ports::history::History::erase_sealed_inputs
    pub keeps_sealed_input: bool,
    /// End time.
    pub at: DateTime<Utc>,
}

/// Ledger of executions.
#[async_trait]
pub trait Ledger: Send + Sync + 'static {
    /// Records a request, unless the same request was recorded before.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn accept(&self, command: AcceptCommand) -> Result<AcceptResult, LedgerError>;

    /// Returns the same as [`Ledger::find_by_key`] from memory, for a message that was repeated more than once. `None`
    /// means that the memory has no entry.
    async fn find_cached_by_key(
        &self,
        _owner: PrincipalId,
        _agent: &AgentId,
        _key: [u8; 32],
    ) -> Option<(ExecutionId, [u8; 32])> {
        None
    }

    /// Records the answer to a question, if the question is still open. Returns true if it was.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn record_answer(&self, command: AnswerCommand) -> Result<bool, LedgerError>;

    /// Returns the execution with this key, and the digest of its content.
    ///
    /// # Errors
    /// Returns an error if the execution could not be read.
    async fn find_by_key(
        &self,
        owner: PrincipalId,
        agent: &AgentId,
        key: [u8; 32],
    ) -> Result<Option<(ExecutionId, [u8; 32])>, LedgerError>;

    /// Claims a slot and the workspace for an attempt, by compare-and-set.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn claim(&self, command: ClaimCommand) -> Result<ClaimResult, LedgerError>;

    /// Appends text, which requires no fence, then events in their order, and applies the transitions among them to the
    /// row. Returns true if the fence was still valid.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn append_batch(
        &self,
        id: ExecutionId,
        fence: Fence,
        batch: WriteBatch,
    ) -> Result<bool, LedgerError>;

    /// Appends events alone, as [`Ledger::append_batch`] does.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn append_events(
        &self,
        id: ExecutionId,
        fence: Fence,
        events: Vec<(DateTime<Utc>, EventKind)>,
    ) -> Result<bool, LedgerError> {
        self.append_batch(id, fence, WriteBatch { chunks: Vec::new(), events }).await
    }

    /// Appends redacted text. A chunk that does not follow a stored chunk changes nothing: the end of a text may be
    /// missing, but never its middle.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn append_chunk(&self, id: ExecutionId, chunk: TextChunk) -> Result<(), LedgerError>;

    /// Deletes the output of an attempt, which will be written again from its start. The input stays.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn delete_output(
        &self,
        id: ExecutionId,
        attempt_id: AttemptId,
    ) -> Result<(), LedgerError>;

    /// Settles an execution once. Returns true if this call settled it.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn settle(&self, settlement: Settlement) -> Result<bool, LedgerError>;

    /// Returns one execution.
    ///
    /// # Errors
    /// Returns an error if the execution could not be read.
    async fn execution(&self, id: ExecutionId) -> Result<Option<ExecutionRecord>, LedgerError>;

    /// Returns the sealed input of the latest turn of an execution, if there is one.
    ///
    /// # Errors
    /// Returns an error if the input could not be read.
    async fn sealed_input(&self, id: ExecutionId) -> Result<Option<Vec<u8>>, LedgerError>;

    /// Returns the matching executions, newest first.
    ///
    /// # Errors
    /// Returns an error if the executions could not be read.
    async fn executions(
        &self,
        filter: ExecutionFilter,
    ) -> Result<Vec<ExecutionRecord>, LedgerError>;

    /// Returns a page of an agent's executions, sorted by status time and id, latest first. Times are compared in
    /// microseconds.
    ///
    /// # Errors
    /// Returns an error if the executions could not be read.
    async fn execution_page(&self, query: ExecutionPageQuery)
    -> Result<ExecutionPage, LedgerError>;

    /// Returns the events of an execution after the given number, in order.
    ///
    /// # Errors
    /// Returns an error if the events could not be read.
    async fn events(&self, id: ExecutionId, after: u64) -> Result<Vec<Event>, LedgerError>;

    /// Returns the redacted text of a range.
    ///
    /// # Errors
    /// Returns an error if the text could not be read.
    async fn text(&self, id: ExecutionId, range: TextRange) -> Result<String, LedgerError>;

    /// Returns the amounts that an agent has used on a day: the sum of the [charged](EventKind::BudgetCharged) amounts.
    ///
    /// # Errors
    /// Returns an error if the amounts could not be read.
    async fn spent_on_day(&self, agent: &AgentId, day: NaiveDate) -> Result<Charge, LedgerError>;

    /// Returns the amounts that all agents have used on the given days; an agent that has used nothing is omitted.
    ///
    /// # Errors
    /// Returns an error if the amounts could not be read.
    async fn spent_by_all_agents(
        &self,
        days: &[NaiveDate],
    ) -> Result<BTreeMap<(AgentId, NaiveDate), Charge>, LedgerError>;

    /// Creates or keeps the principals of the configuration and replaces their configured tokens.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn replace_configured_tokens(
        &self,
        tokens: Vec<NewToken>,
        at: DateTime<Utc>,
    ) -> Result<(), LedgerError>;

    /// Returns every valid token.
    ///
    /// # Errors
    /// Returns an error if the tokens could not be read.
    async fn tokens(&self) -> Result<Vec<Token>, LedgerError>;
}
