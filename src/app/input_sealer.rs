//! Keys of sealed inputs: their storage, and the sealer that uses them.
//!
//! The key is never in the ledger, a log or a backup. A key file of the configuration outlives a reboot. Without one a
//! random key is in the runtime directory, which is in memory, and in the memory of the process holders: either copy
//! restores the other.

mod key;
mod key_file;

use std::path::Path;

use algonius_actors::ports::sealer::{SealError, SealedRowId, Sealer};
use algonius_store::seal::random_secret;
use algonius_warden::process_holders::ProcessHolders;
use key::SealingKey;
pub(crate) use key_file::RuntimeKeyFile;
use uuid::Uuid;

use crate::StartError;
use crate::config::{self, InputSealingKey};

/// First byte of a sealed text: the version of its format.
const FORMAT_VERSION: u8 = 1;

/// Sealer that encrypts with the first of its keys, and decrypts with any of them.
pub(crate) struct KeyringSealer {
    first_key: SealingKey,
    other_keys: Vec<SealingKey>,
    data_dir_id: Uuid,
}

impl KeyringSealer {
    /// Finds the keys of an instance, and creates one if there is none. After this call the runtime directory and all
    /// process holders have the generated key, if there is one; the call returns it with its file.
    pub(crate) async fn load_or_create(
        settings: &config::InputSettings,
        (runtime_dir, data_dir): (&Path, &Path),
        data_dir_id: Uuid,
        holders: &ProcessHolders,
    ) -> Result<(Self, Option<RuntimeKeyFile>), StartError> {
        let file = key_file::key_file_path(runtime_dir, data_dir, data_dir_id);
        let file_secret = file.as_deref().map(key_file::repair_and_read).transpose()?.flatten();
        let held_secrets =
            holders.secrets_from_earlier_holders().filter_map(|secret| secret.try_into().ok());
        let found_secrets: Vec<[u8; 32]> = file_secret.into_iter().chain(held_secrets).collect();
        let configured_secrets: Vec<_> =
            settings.keys.iter().map(|InputSealingKey(secret)| *secret).collect();
        if configured_secrets.is_empty() && found_secrets.is_empty() {
            tracing::info!("created key for sealed inputs");
        }
        let generated_secret =
            (configured_secrets.is_empty() && found_secrets.is_empty()).then(random_secret);
        let runtime_secret = found_secrets.first().copied().or(generated_secret);
        if let Some(secret) = runtime_secret {
            if let Some(file) = file.as_deref().filter(|_| file_secret.is_none()) {
                key_file::write(file, &secret)?;
            }
            // A copy in the process holders survives a runtime directory that is emptied.
            holders.store_secret(secret.to_vec()).await;
        }
        // The first key seals. The others stay, because rows that they sealed may still be queued.
        let secrets = configured_secrets.into_iter().chain(found_secrets).chain(generated_secret);
        let runtime_key = file.zip(runtime_secret);
        let runtime_key = runtime_key.map(|(file, secret)| RuntimeKeyFile::new(file, secret));
        Ok((Self::from_secrets(secrets, data_dir_id), runtime_key))
    }

    fn from_secrets(secrets: impl IntoIterator<Item = [u8; 32]>, data_dir_id: Uuid) -> Self {
        let mut keys: Vec<SealingKey> = Vec::new();
        for key in secrets.into_iter().map(|secret| SealingKey::new(&secret)) {
            if !keys.iter().any(|existing| existing.id == key.id) {
                keys.push(key);
            }
        }
        let first_key =
            if keys.is_empty() { SealingKey::new(&random_secret()) } else { keys.remove(0) };
        Self { first_key, other_keys: keys, data_dir_id }
    }

    /// Returns the associated data of a row: a sealed text can be opened for this row only.
    fn associated_data(&self, row: SealedRowId<'_>) -> Vec<u8> {
        let (kind, id): (&[u8], &[u8]) = match &row {
            SealedRowId::Execution(id) => (b"execution", id.0.as_bytes()),
            SealedRowId::Schedule(id) => (b"schedule", id.as_str().as_bytes()),
            SealedRowId::Interaction(id) => (b"interaction", id.0.as_bytes()),
        };
        [self.data_dir_id.as_bytes(), kind, &[0], id].concat()
    }
}

impl Sealer for KeyringSealer {
    fn seal(&self, row: SealedRowId<'_>, text: &[u8]) -> Result<Vec<u8>, SealError> {
        let sealed = self
            .first_key
            .cipher
            .seal(&self.associated_data(row), text)
            .ok_or(SealError::Damaged)?;
        Ok([&[FORMAT_VERSION][..], &self.first_key.id, &sealed].concat())
    }

    fn unseal(&self, row: SealedRowId<'_>, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let (version, rest) = sealed.split_first().ok_or(SealError::Damaged)?;
        let (id, sealed) = rest.split_first_chunk().ok_or(SealError::Damaged)?;
        if *version != FORMAT_VERSION {
            return Err(SealError::Damaged);
        }
        let mut keys = std::iter::once(&self.first_key).chain(&self.other_keys);
        let key = keys.find(|key| key.id == *id).ok_or(SealError::KeyMissing)?;
        key.cipher.unseal(&self.associated_data(row), sealed).ok_or(SealError::Damaged)
    }
}

#[cfg(test)]
mod tests {
    use algonius_actors::model::id::{ExecutionId, ScheduleId};

    use super::*;

    const TEXT: &[u8] = b"mail jane@host.test";

    fn sealer(secrets: &[[u8; 32]]) -> KeyringSealer {
        KeyringSealer::from_secrets(secrets.iter().copied(), Uuid::from_u128(1))
    }

    #[test]
    fn a_sealed_text_opens_only_for_its_row_and_instance() {
        let (execution, other_execution) = (ExecutionId::generate(), ExecutionId::generate());
        let sealer = sealer(&[[1; 32]]);
        let sealed = sealer.seal(SealedRowId::Execution(execution), TEXT).unwrap();
        assert!(!sealed.windows(4).any(|part| part == b"jane"));
        assert_eq!(sealer.unseal(SealedRowId::Execution(execution), &sealed).unwrap(), TEXT);
        let other_data_dir = KeyringSealer::from_secrets([[1; 32]], Uuid::from_u128(2));
        let schedule = ScheduleId::new("nightly").unwrap();
        for (sealer, row) in [
            (&sealer, SealedRowId::Execution(other_execution)),
            (&sealer, SealedRowId::Schedule(&schedule)),
            (&other_data_dir, SealedRowId::Execution(execution)),
        ] {
            assert_eq!(sealer.unseal(row, &sealed), Err(SealError::Damaged));
        }
        for at in 0..sealed.len() {
            let mut forged = sealed.clone();
            forged[at] ^= 1;
            assert!(
                sealer.unseal(SealedRowId::Execution(execution), &forged).is_err(),
                "byte {at}"
            );
            assert!(
                sealer.unseal(SealedRowId::Execution(execution), &sealed[..at]).is_err(),
                "cut at {at}"
            );
        }
    }

    #[test]
    fn a_replaced_key_still_opens_old_texts() {
        let row = SealedRowId::Execution(ExecutionId::generate());
        let old = sealer(&[[1; 32]]).seal(row, TEXT).unwrap();
        let two_keys = sealer(&[[2; 32], [1; 32], [2; 32]]);
        assert_eq!(two_keys.unseal(row, &old).unwrap(), TEXT);
        let new = two_keys.seal(row, TEXT).unwrap();
        assert_eq!(sealer(&[[2; 32]]).unseal(row, &new).unwrap(), TEXT);
        assert_eq!(sealer(&[[2; 32]]).unseal(row, &old), Err(SealError::KeyMissing));
        assert_eq!(sealer(&[]).unseal(row, &old), Err(SealError::KeyMissing));
    }
}
