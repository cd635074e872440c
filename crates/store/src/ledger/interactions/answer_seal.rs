//! Seal of raw answers, which the ledger stores until their delivery if redaction changes them.

use std::fmt;
use std::sync::{Arc, OnceLock};

use algonius_actors::model::interaction::InteractionId;
use algonius_actors::ports::sealer::{SealError, SealedRowId, Sealer};

use crate::engine::encryption::StoreCipher;
use crate::engine::error::decode_error;
use crate::engine::sql;

/// Seal with the key of inputs, which is not in the ledger.
#[derive(Clone)]
pub(crate) struct AnswerSeal {
    /// Sealer with the key of inputs. The service sets it after the store is open, because the name of the key file
    /// contains the id of the instance, which is in the ledger.
    sealer: Arc<OnceLock<Arc<dyn Sealer>>>,
    /// Seal of earlier releases, whose key is in the ledger. It only opens.
    earlier_cipher: StoreCipher,
}

impl fmt::Debug for AnswerSeal {
    /// Hides the keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnswerSeal")
    }
}

impl AnswerSeal {
    /// Creates the seal without its key.
    pub(crate) fn new(earlier_cipher: StoreCipher) -> Self {
        Self { sealer: Arc::default(), earlier_cipher }
    }

    /// Sets the sealer. Later calls change nothing.
    pub(crate) fn set_sealer(&self, sealer: Arc<dyn Sealer>) {
        _ = self.sealer.set(sealer);
    }

    /// Seals the answer to an interaction.
    pub(super) fn seal(&self, id: InteractionId, answer: &[u8]) -> sql::Result<Vec<u8>> {
        let sealer = self.sealer.get().ok_or(SealError::KeyMissing);
        let sealed = sealer.and_then(|sealer| sealer.seal(SealedRowId::Interaction(id), answer));
        sealed.map_err(|error| sql::Error::Encode(error.into()))
    }

    /// Opens the answer to an interaction; `None` if its key is gone.
    pub(super) fn unseal(&self, id: InteractionId, sealed: &[u8]) -> sql::Result<Option<Vec<u8>>> {
        let sealer = self.sealer.get().ok_or(SealError::KeyMissing);
        let unsealed =
            sealer.and_then(|sealer| sealer.unseal(SealedRowId::Interaction(id), sealed));
        match (unsealed, self.earlier_cipher.unseal(id.0.as_bytes(), sealed)) {
            (Ok(answer), _) | (Err(_), Ok(answer)) => Ok(Some(answer)),
            (Err(SealError::KeyMissing), Err(_)) => Ok(None),
            (Err(error @ SealError::Damaged), Err(_)) => Err(decode_error(error)),
        }
    }
}
