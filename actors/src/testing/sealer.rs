//! Sealer whose key can be lost.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::ports::sealer::{SealError, SealedFor, Sealer};

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

    fn head(&self, row: SealedFor<'_>) -> (u8, Vec<u8>) {
        let row = match row {
            SealedFor::Execution(id) => id.to_string(),
            SealedFor::Schedule(id) => id.to_string(),
        };
        (self.key.load(Ordering::SeqCst), row.into_bytes())
    }
}

impl Sealer for ScriptedSealer {
    fn seal(&self, row: SealedFor<'_>, text: &[u8]) -> Result<Vec<u8>, SealError> {
        let (key, row) = self.head(row);
        let turned: Vec<u8> = text.iter().rev().copied().collect();
        Ok([&[key][..], &row, &[0], &turned].concat())
    }

    fn unseal(&self, row: SealedFor<'_>, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let (key, row) = self.head(row);
        let (sealed_under, rest) = sealed.split_first().ok_or(SealError::Damaged)?;
        if *sealed_under != key {
            return Err(SealError::KeyMissing);
        }
        let turned = rest.strip_prefix(row.as_slice()).and_then(|rest| rest.strip_prefix(&[0]));
        turned.map(|turned| turned.iter().rev().copied().collect()).ok_or(SealError::Damaged)
    }
}
