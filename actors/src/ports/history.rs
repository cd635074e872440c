//! What is kept of executions: read in parts of bounded size, measured, and taken out again.
//!
//! An implementation commits before it answers. What is removed is removed with all that belongs to
//! it, or not at all.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::ledger::LedgerError;
use crate::model::event::{Event, Span};
use crate::model::id::{ExecutionId, PrincipalId};
use crate::model::stock::{Removal, Stock, Sweep};

/// A part of a text that begins and ends with whole characters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Passage {
    /// Its first byte.
    pub from: u64,
    /// The text.
    pub text: String,
}

impl Passage {
    /// The byte after its last.
    #[must_use]
    pub fn to(&self) -> u64 {
        self.from + self.text.len() as u64
    }
}

/// The history.
#[async_trait]
pub trait History: Send + Sync + 'static {
    /// At most so many events of an execution after the given number, in order.
    ///
    /// # Errors
    /// When they could not be read.
    async fn some_events(
        &self,
        id: ExecutionId,
        after: u64,
        most: u32,
    ) -> Result<Vec<Event>, LedgerError>;

    /// Every text of an execution, from its first byte to its last so far.
    ///
    /// # Errors
    /// When they could not be read.
    async fn texts(&self, id: ExecutionId) -> Result<Vec<Span>, LedgerError>;

    /// The whole characters within a range of a text.
    ///
    /// # Errors
    /// When it could not be read.
    async fn passage(&self, id: ExecutionId, span: Span) -> Result<Passage, LedgerError>;

    /// The names of all principals.
    ///
    /// # Errors
    /// When they could not be read.
    async fn callers(&self) -> Result<BTreeMap<PrincipalId, String>, LedgerError>;

    /// How much there is.
    ///
    /// # Errors
    /// When it could not be read.
    async fn stock(&self) -> Result<Stock, LedgerError>;

    /// Removes an execution that has ended.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn remove(&self, id: ExecutionId) -> Result<Removal, LedgerError>;

    /// Removes some of those that have ended, in one turn that is short. Answers how many; none when
    /// there are no more.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn sweep(&self, sweep: Sweep) -> Result<u64, LedgerError>;

    /// Gives some bytes that hold nothing back to the system, in one turn that is short. Answers how
    /// many; none when there are few left.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn shrink(&self) -> Result<u64, LedgerError>;
}
