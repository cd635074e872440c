//! History of executions: bounded reads, statistics, and removal.
//!
//! An implementation commits before it returns. It removes an execution with all its data, or not at all.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::ledger::LedgerError;
use crate::model::execution::event::{Event, TextRange};
use crate::model::host::storage_stats::{DeletionOutcome, RetentionBatchSelector, StorageStats};
use crate::model::id::{ExecutionId, PrincipalId};

/// Slice of a text that begins and ends with whole characters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextSlice {
    /// Offset of the first byte.
    pub start_offset: u64,
    /// Text of the slice.
    pub text: String,
}

impl TextSlice {
    /// Returns the offset of the byte after the last one.
    #[must_use]
    pub fn end_offset(&self) -> u64 {
        self.start_offset + self.text.len() as u64
    }
}

/// History of executions.
#[async_trait]
pub trait History: Send + Sync + 'static {
    /// Returns at most `limit` events of an execution after the given number, in order.
    ///
    /// # Errors
    /// Returns an error if the events could not be read.
    async fn next_events(
        &self,
        id: ExecutionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Event>, LedgerError>;

    /// Returns every text of an execution, from its first byte to its last byte so far.
    ///
    /// # Errors
    /// Returns an error if the texts could not be read.
    async fn text_ranges(&self, id: ExecutionId) -> Result<Vec<TextRange>, LedgerError>;

    /// Returns the whole characters within a range of a text.
    ///
    /// # Errors
    /// Returns an error if the text could not be read.
    async fn text_slice(&self, id: ExecutionId, range: TextRange)
    -> Result<TextSlice, LedgerError>;

    /// Returns the names of all principals.
    ///
    /// # Errors
    /// Returns an error if the names could not be read.
    async fn principal_names(&self) -> Result<BTreeMap<PrincipalId, String>, LedgerError>;

    /// Returns the storage statistics.
    ///
    /// # Errors
    /// Returns an error if the statistics could not be read.
    async fn storage_stats(&self) -> Result<StorageStats, LedgerError>;

    /// Removes an execution that has ended.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn remove(&self, id: ExecutionId) -> Result<DeletionOutcome, LedgerError>;

    /// Removes some executions that have ended, in one short transaction. Returns the number of removed executions; 0
    /// when there are no more.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn remove_batch(&self, batch: RetentionBatchSelector) -> Result<u64, LedgerError>;

    /// Erases the sealed inputs of executions that ended before this time. Returns their number.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn erase_sealed_inputs(&self, before: DateTime<Utc>) -> Result<u64, LedgerError>;

    /// Returns some unused bytes to the system, in one short transaction. Returns the number of bytes; 0 when few
    /// unused bytes are left.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn release_free_pages(&self) -> Result<u64, LedgerError>;
}
