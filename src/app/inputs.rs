//! Keys of sealed inputs: their storage, and the sealer that uses them.
//!
//! The key is never in the ledger, a log or a backup. A key file of the configuration outlives a reboot. Without one a
//! random key is in the runtime directory, which is in memory, and in the memory of the process holders: either copy
//! restores the other.

mod key;
mod key_file;

use std::path::Path;

use algonius_actors::ports::sealer::{SealError, SealedFor, Sealer};
use algonius_store::seal::random_secret;
use algonius_warden::wardens::ProcessHolders;
use key::SealingKey;
use uuid::Uuid;

use crate::StartError;
use crate::config::{self, InputKey};

/// First byte of a sealed text: the version of its format.
const FORMAT_VERSION: u8 = 1;

/// Sealer that encrypts with the first of its keys, and decrypts with any of them.
pub(crate) struct KeySealer {
    first: SealingKey,
    others: Vec<SealingKey>,
    instance: Uuid,
}

impl KeySealer {
    /// Finds the keys of an instance, and creates one if there is none. After this call the runtime directory and all
    /// process holders have the generated key, if there is one.
    pub(crate) async fn open(
        settings: &config::InputSettings,
        (runtime_dir, data_dir): (&Path, &Path),
        instance: Uuid,
        wardens: &ProcessHolders,
    ) -> Result<Self, StartError> {
        let file = key_file::key_file_path(runtime_dir, data_dir, instance);
        let in_file = file.as_deref().map(key_file::read).transpose()?.flatten();
        let kept = wardens.stored_secret().filter_map(|secret| secret.try_into().ok());
        let found: Vec<[u8; 32]> = in_file.into_iter().chain(kept).collect();
        let configured: Vec<_> = settings.keys.iter().map(|InputKey(secret)| *secret).collect();
        if configured.is_empty() && found.is_empty() {
            tracing::info!("created key for sealed inputs");
        }
        let made = (configured.is_empty() && found.is_empty()).then(random_secret);
        let runtime = found.first().copied().or(made);
        if let Some(secret) = runtime {
            if let Some(file) = file.filter(|_| in_file.is_none()) {
                key_file::write(&file, &secret)?;
            }
            // A copy in the process holders survives a runtime directory that is emptied.
            wardens.store_secret(secret.to_vec()).await;
        }
        // The first key seals. The others stay, because rows that they sealed may still be queued.
        let secrets = configured.into_iter().chain(found).chain(made);
        Ok(Self::of(secrets, instance))
    }

    fn of(secrets: impl IntoIterator<Item = [u8; 32]>, instance: Uuid) -> Self {
        let mut keys: Vec<SealingKey> = Vec::new();
        for key in secrets.into_iter().map(|secret| SealingKey::new(&secret)) {
            if !keys.iter().any(|known| known.id == key.id) {
                keys.push(key);
            }
        }
        let first =
            if keys.is_empty() { SealingKey::new(&random_secret()) } else { keys.remove(0) };
        Self { first, others: keys, instance }
    }

    /// Returns the associated data of a row: a sealed text can be opened for this row only.
    fn place(&self, row: SealedFor<'_>) -> Vec<u8> {
        let (kind, id): (&[u8], &[u8]) = match &row {
            SealedFor::Execution(id) => (b"execution", id.0.as_bytes()),
            SealedFor::Schedule(id) => (b"schedule", id.as_str().as_bytes()),
        };
        [self.instance.as_bytes(), kind, &[0], id].concat()
    }
}

impl Sealer for KeySealer {
    fn close(&self, row: SealedFor<'_>, text: &[u8]) -> Result<Vec<u8>, SealError> {
        let sealed = self.first.cipher.close(&self.place(row), text).ok_or(SealError::Damaged)?;
        Ok([&[FORMAT_VERSION][..], &self.first.id, &sealed].concat())
    }

    fn open(&self, row: SealedFor<'_>, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let (version, rest) = sealed.split_first().ok_or(SealError::Damaged)?;
        let (id, sealed) = rest.split_first_chunk().ok_or(SealError::Damaged)?;
        if *version != FORMAT_VERSION {
            return Err(SealError::Damaged);
        }
        let mut keys = std::iter::once(&self.first).chain(&self.others);
        let key = keys.find(|key| key.id == *id).ok_or(SealError::KeyGone)?;
        key.cipher.open(&self.place(row), sealed).ok_or(SealError::Damaged)
    }
}

#[cfg(test)]
mod tests {
    use algonius_actors::model::id::{ExecutionId, ScheduleId};

    use super::*;

    const TEXT: &[u8] = b"mail jane@host.test";

    fn sealer(secrets: &[[u8; 32]]) -> KeySealer {
        KeySealer::of(secrets.iter().copied(), Uuid::from_u128(1))
    }

    #[test]
    fn a_sealed_text_opens_only_for_its_row_and_instance() {
        let (one, other) = (ExecutionId::fresh(), ExecutionId::fresh());
        let sealer = sealer(&[[1; 32]]);
        let sealed = sealer.close(SealedFor::Execution(one), TEXT).unwrap();
        assert!(!sealed.windows(4).any(|part| part == b"jane"));
        assert_eq!(sealer.open(SealedFor::Execution(one), &sealed).unwrap(), TEXT);
        let elsewhere = KeySealer::of([[1; 32]], Uuid::from_u128(2));
        let schedule = ScheduleId::new("nightly").unwrap();
        for (sealer, row) in [
            (&sealer, SealedFor::Execution(other)),
            (&sealer, SealedFor::Schedule(&schedule)),
            (&elsewhere, SealedFor::Execution(one)),
        ] {
            assert_eq!(sealer.open(row, &sealed), Err(SealError::Damaged));
        }
        for at in 0..sealed.len() {
            let mut forged = sealed.clone();
            forged[at] ^= 1;
            assert!(sealer.open(SealedFor::Execution(one), &forged).is_err(), "byte {at}");
            assert!(sealer.open(SealedFor::Execution(one), &sealed[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_replaced_key_still_opens_old_texts() {
        let row = SealedFor::Execution(ExecutionId::fresh());
        let old = sealer(&[[1; 32]]).close(row, TEXT).unwrap();
        let both = sealer(&[[2; 32], [1; 32], [2; 32]]);
        assert_eq!(both.open(row, &old).unwrap(), TEXT);
        let new = both.close(row, TEXT).unwrap();
        assert_eq!(sealer(&[[2; 32]]).open(row, &new).unwrap(), TEXT);
        assert_eq!(sealer(&[[2; 32]]).open(row, &old), Err(SealError::KeyGone));
        assert_eq!(sealer(&[]).open(row, &old), Err(SealError::KeyGone));
    }
}
