//! Sealer whose key can be lost.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::ports::sealer::{SealError, SealedRowId, Sealer};

/// Sealer with a number instead of a key. The text is reversed, so that no test mistakes it for the raw one.
#[derive(Debug, Default)]
pub struct ScriptedSealer {
    key: AtomicU8,
}

impl ScriptedSealer {
    /// Replaces the key: texts that were sealed before can no longer be opened.
    pub fn lose_key(&self) {
        self.key.fetch_add(1, Ordering::SeqCst);
    }

    /// Restores the key that was lost last.
    pub fn restore_key(&self) {
        self.key.fetch_sub(1, Ordering::SeqCst);
    }

    fn key_and_row_bytes(&self, row: SealedRowId<'_>) -> (u8, Vec<u8>) {
        let row = match row {
            SealedRowId::Execution(id) => id.to_string(),
            SealedRowId::Schedule(id) => id.to_string(),
            SealedRowId::Interaction(id) => id.to_string(),
        };
        (self.key.load(Ordering::SeqCst), row.into_bytes())
    }
}

impl Sealer for ScriptedSealer {
    fn seal(&self, row: SealedRowId<'_>, text: &[u8]) -> Result<Vec<u8>, SealError> {
        let (key, row) = self.key_and_row_bytes(row);
        let reversed: Vec<u8> = text.iter().rev().copied().collect();
        Ok([&[key][..], &row, &[0], &reversed].concat())
    }

    fn unseal(&self, row: SealedRowId<'_>, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let (key, row) = self.key_and_row_bytes(row);
        let (sealing_key, rest) = sealed.split_first().ok_or(SealError::Damaged)?;
        if *sealing_key != key {
            return Err(SealError::KeyMissing);
        }
        let reversed = rest.strip_prefix(row.as_slice()).and_then(|rest| rest.strip_prefix(&[0]));
        reversed.map(|reversed| reversed.iter().rev().copied().collect()).ok_or(SealError::Damaged)
    }
}
