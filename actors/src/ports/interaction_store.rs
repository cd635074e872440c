//! Store of interactions and of permission decisions.
//!
//! An implementation commits before it returns. An interaction leaves the state `open` once: of an answer, an expiry, a
//! withdrawal and a loss at the same time, one succeeds.

pub mod reports;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::ledger::LedgerError;
use crate::model::execution::Fence;
use crate::model::interaction::{
    Interaction, InteractionEnd, InteractionFilter, InteractionId, InteractionRequestKey,
};
use crate::model::permission::{DecisionFilter, PermissionDecision};

/// Result of [`InteractionStore::open`].
#[derive(Debug, Clone, PartialEq)]
pub enum OpenInteractionOutcome {
    /// The interaction is recorded and open. The execution counts it.
    New,
    /// An interaction of the same place exists; it may be closed. Its answer is raw until it was
    /// [delivered](InteractionStore::record_answer_delivery), and absent if the raw answer cannot be read.
    Existing(Box<Interaction>),
    /// The fence is no longer valid, or the execution neither starts nor runs.
    Superseded,
}

/// Result of [`InteractionStore::close`].
#[derive(Debug, Clone, PartialEq)]
pub enum CloseInteractionOutcome {
    /// This call closed the interaction. Its answer is raw.
    Closed(Box<Interaction>),
    /// The interaction was closed before. Its answer is raw until it was
    /// [delivered](InteractionStore::record_answer_delivery).
    AlreadyClosed(Box<Interaction>),
    /// There is no such interaction.
    Unknown,
}

/// Store of interactions.
#[async_trait]
pub trait InteractionStore: Send + Sync + 'static {
    /// Records an open interaction, the event that reports it, and the number of open interactions of the execution,
    /// unless an interaction of the same [request key](Interaction::request_key) exists. The settlement of the
    /// execution, and a claim for another attempt, close the open interactions and erase the raw answers.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn open(
        &self,
        interaction: Interaction,
        fence: Fence,
    ) -> Result<OpenInteractionOutcome, LedgerError>;

    /// Closes an open interaction by compare-and-set, with the event and the permission decision that report it.
    /// `redacted_end` is the redacted form of the end. Events, lists and decisions contain only that form.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn close(
        &self,
        id: InteractionId,
        end: InteractionEnd,
        redacted_end: InteractionEnd,
    ) -> Result<CloseInteractionOutcome, LedgerError>;

    /// Records that the answer was written to the agent. The raw answer is erased; its redacted form stays. An open
    /// interaction stays open, and the first delivery counts.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn record_answer_delivery(
        &self,
        id: InteractionId,
        at: DateTime<Utc>,
    ) -> Result<(), LedgerError>;

    /// Returns an interaction. Its answer is raw until it was [delivered](Self::record_answer_delivery), and redacted
    /// later.
    ///
    /// # Errors
    /// Returns an error if the interaction could not be read.
    async fn interaction(&self, id: InteractionId) -> Result<Option<Interaction>, LedgerError>;

    /// Returns the interaction of an agent's request, with its redacted answer.
    ///
    /// # Errors
    /// Returns an error if the interaction could not be read.
    async fn find_by_request_key(
        &self,
        request_key: &InteractionRequestKey,
    ) -> Result<Option<Interaction>, LedgerError>;

    /// Returns the matching interactions, newest first, with redacted answers.
    ///
    /// # Errors
    /// Returns an error if the interactions could not be read.
    async fn interactions(
        &self,
        filter: InteractionFilter,
    ) -> Result<Vec<Interaction>, LedgerError>;

    /// Records a verdict that was given without an interaction.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn record_decision(&self, decision: PermissionDecision) -> Result<(), LedgerError>;

    /// Returns the matching decisions, oldest first, each with its number.
    ///
    /// # Errors
    /// Returns an error if the decisions could not be read.
    async fn decisions(
        &self,
        filter: DecisionFilter,
    ) -> Result<Vec<(u64, PermissionDecision)>, LedgerError>;
}
