//! Sealing of raw text: text that redaction changes is stored in encrypted form only.

use crate::model::id::{ExecutionId, ScheduleId};
use crate::model::interaction::InteractionId;

/// Row that a sealed text belongs to. The text opens for no other row.
#[derive(Debug, Clone, Copy)]
pub enum SealedRowId<'r> {
    /// Input of an execution.
    Execution(ExecutionId),
    /// Texts of a schedule.
    Schedule(&'r ScheduleId),
    /// Answer to an interaction.
    Interaction(InteractionId),
}

/// Error of sealing or opening a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// No key of this service opens the text: the key was lost, or replaced.
    #[error("the key of the sealed input is gone")]
    KeyMissing,
    /// The text was changed, belongs to another row, or is too long.
    #[error("the sealed input is damaged")]
    Damaged,
}

/// Encrypts and decrypts raw text. An implementation keeps its key out of the ledger, the log and backups.
pub trait Sealer: Send + Sync + 'static {
    /// Encrypts a text for one row.
    ///
    /// # Errors
    /// Returns an error if there is no key, or if the text is too long.
    fn seal(&self, row: SealedRowId<'_>, text: &[u8]) -> Result<Vec<u8>, SealError>;

    /// Decrypts the text of a row.
    ///
    /// # Errors
    /// Returns an error if the key no longer exists, or if `sealed` was not sealed for this row.
    fn unseal(&self, row: SealedRowId<'_>, sealed: &[u8]) -> Result<Vec<u8>, SealError>;
}

/// Sealer of a service without a key: inputs that redaction changes are in memory only.
#[derive(Debug, Clone, Copy)]
pub struct KeylessSealer;

impl Sealer for KeylessSealer {
    fn seal(&self, _: SealedRowId<'_>, _: &[u8]) -> Result<Vec<u8>, SealError> {
        Err(SealError::KeyMissing)
    }

    fn unseal(&self, _: SealedRowId<'_>, _: &[u8]) -> Result<Vec<u8>, SealError> {
        Err(SealError::KeyMissing)
    }
}
