//! The truth: every accepted execution, its moves, events, text and outcome.
//!
//! An implementation commits before it answers. Calls that carry a [`Fence`] change nothing when
//! the execution was claimed again or settled since; only the moves into and out of the clean-up
//! are still recorded after the end.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, Utc};

use crate::model::agent::Access;
use crate::model::budget::Charge;
use crate::model::content::Piece;
use crate::model::event::{Chunk, Event, Fact, Span};
use crate::model::execution::{Fence, Move, Outcome, Stamp};
use crate::model::failure::Failure;
use crate::model::id::{AgentId, ContextId, ExecutionId, MessageId, PrincipalId};
use crate::model::principal::{Token, TokenSeed};
use crate::model::queue::Reason;
use crate::model::record::{Filter, Page, PageQuery, Record};
use crate::model::request::{Keys, Overrides, Trigger};
use crate::model::trace::Trace;
use crate::model::workspace::Workspace;

/// Why the ledger did not do what was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LedgerError {
    /// The store is full, closed or broken. Nothing of the call was committed.
    #[error("the ledger could not commit: {cause}")]
    Unavailable {
        /// For the log; never shown to a caller.
        cause: String,
    },
    /// A row cannot be read as what it should be.
    #[error("the ledger holds a row that cannot be read: {cause}")]
    Unreadable {
        /// For the log; never shown to a caller.
        cause: String,
    },
}

/// A request to be accepted. All text in it is redacted.
#[derive(Debug, Clone)]
pub struct Accept {
    /// The id it will have.
    pub id: ExecutionId,
    /// Who is asked.
    pub agent: AgentId,
    /// Who asks.
    pub owner: PrincipalId,
    /// The caller's id of the message.
    pub message: MessageId,
    /// Under what it is known: the same key is the same execution.
    pub keys: Keys,
    /// Digest of what was asked: the same key with another digest is refused.
    pub digest: [u8; 32],
    /// The key of what is asked, and since when an equal request may give it its result; `None`
    /// where requests give each other nothing.
    pub content: Option<([u8; 32], DateTime<Utc>)>,
    /// The conversation.
    pub context: ContextId,
    /// What made it.
    pub trigger: Trigger,
    /// Where in a trace it is asked.
    pub trace: Option<Trace>,
    /// Whether the agent changes things.
    pub access: Access,
    /// Redacted text of all parts of the input.
    pub input: String,
    /// Where each part stands in it.
    pub pieces: Vec<Piece>,
    /// Redacted parameters.
    pub params: BTreeMap<String, String>,
    /// What the caller chose.
    pub overrides: Overrides,
    /// Whether redaction left the input as it was.
    pub replayable: bool,
    /// When it was accepted.
    pub at: DateTime<Utc>,
}

impl Accept {
    /// The key of what is asked, and after and before when an equal request was accepted that gives
    /// it its result. What was accepted long after now was so before the clock was set back, and
    /// nobody knows how long ago that is.
    #[must_use]
    pub fn window(&self) -> Option<([u8; 32], DateTime<Utc>, DateTime<Utc>)> {
        let (key, since) = self.content?;
        Some((key, since, self.at.checked_add_signed(self.at - since)?))
    }
}

/// The answer to a question. All text in it is redacted.
#[derive(Debug, Clone)]
pub struct Resume {
    /// The execution that asked.
    pub id: ExecutionId,
    /// Its agent.
    pub agent: AgentId,
    /// Who answers, and owns it.
    pub owner: PrincipalId,
    /// The generation the answerer knows.
    pub fence: Fence,
    /// The turn that the answer begins.
    pub stamp: Stamp,
    /// The caller's id of the message.
    pub message: MessageId,
    /// Under what it is known.
    pub keys: Keys,
    /// Digest of what was said.
    pub digest: [u8; 32],
    /// Redacted text of all parts.
    pub input: String,
    /// Where each part stands in it.
    pub pieces: Vec<Piece>,
    /// Redacted parameters.
    pub params: BTreeMap<String, String>,
    /// What the caller chose.
    pub overrides: Overrides,
    /// Whether redaction left it as it was.
    pub replayable: bool,
    /// When.
    pub at: DateTime<Utc>,
}

/// What became of an [`Accept`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// It is a new row.
    Fresh,
    /// It is a new row, and this execution was asked the same by the same caller: it has completed
    /// since the time that was given, or is under way.
    Equal(ExecutionId),
    /// The same request was accepted before, as this execution.
    Twin(ExecutionId),
    /// The same key was accepted before with another digest.
    Conflict,
}

impl Acceptance {
    /// What a request is when these executions are known under its keys, each with the digest of
    /// what was asked; `None` when none is. Keys that name two executions are a conflict.
    #[must_use]
    pub fn of_known(found: &[(ExecutionId, [u8; 32])], digest: [u8; 32]) -> Option<Self> {
        let (first, _) = found.first()?;
        let is_same = found.iter().all(|(id, known)| id == first && *known == digest);
        Some(if is_same { Self::Twin(*first) } else { Self::Conflict })
    }
}

/// An order to start an attempt.
#[derive(Debug, Clone)]
pub struct ClaimOrder {
    /// The execution.
    pub id: ExecutionId,
    /// Its agent.
    pub agent: AgentId,
    /// Executions of that agent that may hold a slot; `None` is unlimited.
    pub limit: Option<u32>,
    /// The folder that it changes, if it does. While it starts or runs nothing else is granted that
    /// overlaps with it, of whatever agent.
    pub workspace: Option<Workspace>,
    /// Whether the messages of a conversation go one after the other: it waits for every earlier one of
    /// the same owner, agent and context that has a turn or waits for one.
    pub in_turn: bool,
    /// The generation the claimer knows.
    pub fence: Fence,
    /// The move to Starting.
    pub moved: Move,
}

/// What became of a [`ClaimOrder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The slot is held under this new generation.
    Granted(Fence),
    /// What it needs is held; try later.
    Busy(Reason),
    /// It was settled or claimed by somebody else.
    Gone,
}

/// What is written of an execution in one go.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lines {
    /// Redacted text, of which the facts may speak.
    pub chunks: Vec<Chunk>,
    /// What happened, in its order, and when.
    pub facts: Vec<(DateTime<Utc>, Fact)>,
}

impl Lines {
    /// Moves alone, each at its time.
    #[must_use]
    pub fn of_moves(moves: impl IntoIterator<Item = Move>) -> Self {
        let facts = moves.into_iter().map(|moved| (moved.at, Fact::Moved(moved)));
        Self { chunks: Vec::new(), facts: facts.collect() }
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.facts.is_empty()
    }

    /// Takes what comes after these.
    pub fn extend(&mut self, more: Self) {
        self.chunks.extend(more.chunks);
        self.facts.extend(more.facts);
    }
}

/// The end of an execution.
#[derive(Debug, Clone)]
pub struct Settlement {
    /// The execution.
    pub id: ExecutionId,
    /// The generation under which it ran; the last one known for what never ran.
    pub fence: Fence,
    /// The latest attempt.
    pub stamp: Stamp,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it did not work.
    pub failure: Option<Failure>,
    /// The exit code of the last process.
    pub exit_code: Option<i32>,
    /// The last that was written of it, with the moves that led to the end.
    pub lines: Lines,
    /// When.
    pub at: DateTime<Utc>,
}

/// The ledger.
#[async_trait]
pub trait Ledger: Send + Sync + 'static {
    /// Records a request, unless the same one was recorded before.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn accept(&self, accept: Accept) -> Result<Acceptance, LedgerError>;

    /// As [`Ledger::taken`], for a message that came more than once before: from memory, where it is there.
    /// `None` says nothing.
    async fn again(
        &self,
        _owner: PrincipalId,
        _agent: &AgentId,
        _key: [u8; 32],
    ) -> Option<(ExecutionId, [u8; 32])> {
        None
    }

    /// Records the answer to a question, if it is still open. Answers whether it was.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn resume(&self, resume: Resume) -> Result<bool, LedgerError>;

    /// The execution that is known under this key, and the digest under which it did.
    ///
    /// # Errors
    /// When it could not be read.
    async fn taken(
        &self,
        owner: PrincipalId,
        agent: &AgentId,
        key: [u8; 32],
    ) -> Result<Option<(ExecutionId, [u8; 32])>, LedgerError>;

    /// Takes a slot and the workspace for an attempt, by compare-and-set.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn claim(&self, order: ClaimOrder) -> Result<Claim, LedgerError>;

    /// Appends text, which needs no fence, then facts in their order, and lets the row follow the
    /// moves among them. Answers whether the fence still held.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn write(&self, id: ExecutionId, fence: Fence, lines: Lines)
    -> Result<bool, LedgerError>;

    /// Appends facts alone, as [`Ledger::write`] does.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn record(
        &self,
        id: ExecutionId,
        fence: Fence,
        facts: Vec<(DateTime<Utc>, Fact)>,
    ) -> Result<bool, LedgerError> {
        self.write(id, fence, Lines { chunks: Vec::new(), facts }).await
    }

    /// Appends redacted text. A chunk that does not follow one that is there changes nothing: the end of a
    /// text may be missing, and never its middle.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn append(&self, id: ExecutionId, chunk: Chunk) -> Result<(), LedgerError>;

    /// Removes the text that an attempt wrote, which will be written again from its beginning.
    /// What was asked stays.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn unwrite(&self, id: ExecutionId, stamp: Stamp) -> Result<(), LedgerError>;

    /// Ends an execution once. Answers whether this call ended it.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn settle(&self, settlement: Settlement) -> Result<bool, LedgerError>;

    /// One execution.
    ///
    /// # Errors
    /// When it could not be read.
    async fn execution(&self, id: ExecutionId) -> Result<Option<Record>, LedgerError>;

    /// Executions, newest first.
    ///
    /// # Errors
    /// When they could not be read.
    async fn executions(&self, filter: Filter) -> Result<Vec<Record>, LedgerError>;

    /// Executions of an agent, by the time of their status and then by id, latest first. Times
    /// are compared in microseconds.
    ///
    /// # Errors
    /// When they could not be read.
    async fn page(&self, query: PageQuery) -> Result<Page, LedgerError>;

    /// Events of an execution after the given number, in order.
    ///
    /// # Errors
    /// When they could not be read.
    async fn events(&self, id: ExecutionId, after: u64) -> Result<Vec<Event>, LedgerError>;

    /// The redacted text of a range.
    ///
    /// # Errors
    /// When it could not be read.
    async fn text(&self, id: ExecutionId, span: Span) -> Result<String, LedgerError>;

    /// What an agent has used up in a day: the sum of what was [charged](Fact::Charged).
    ///
    /// # Errors
    /// When it could not be read.
    async fn spent(&self, agent: &AgentId, day: NaiveDate) -> Result<Charge, LedgerError>;

    /// What all agents have used up in some days; one that has used up nothing is left out.
    ///
    /// # Errors
    /// When it could not be read.
    async fn spent_by_all(
        &self,
        days: &[NaiveDate],
    ) -> Result<BTreeMap<(AgentId, NaiveDate), Charge>, LedgerError>;

    /// Makes or keeps the principals of the configuration and replaces their seeded tokens.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn seed(&self, tokens: Vec<TokenSeed>, at: DateTime<Utc>) -> Result<(), LedgerError>;

    /// Every token that counts.
    ///
    /// # Errors
    /// When they could not be read.
    async fn tokens(&self) -> Result<Vec<Token>, LedgerError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_must_agree_on_one_execution_and_on_what_was_asked() {
        let (one, other) = (ExecutionId::fresh(), ExecutionId::fresh());
        let asked = [1; 32];
        assert_eq!(Acceptance::of_known(&[], asked), None);
        assert_eq!(Acceptance::of_known(&[(one, asked)], asked), Some(Acceptance::Twin(one)));
        assert_eq!(
            Acceptance::of_known(&[(one, asked), (one, asked)], asked),
            Some(Acceptance::Twin(one))
        );
        for found in [vec![(one, [2; 32])], vec![(one, asked), (other, asked)]] {
            assert_eq!(Acceptance::of_known(&found, asked), Some(Acceptance::Conflict));
        }
    }
}
