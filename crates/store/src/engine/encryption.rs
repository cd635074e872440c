//! Encryption of texts that the database must not contain in plain form, with keys derived from the key of this
//! instance.

use super::error::decode_error;
use super::sql;
use crate::seal;

/// Purpose of a key; each purpose has a key of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KeyPurpose {
    /// Addresses and credentials of push targets.
    PushTargets,
    /// Session ids of programs.
    Sessions,
    /// Answers to interactions that an earlier release sealed.
    EarlierAnswers,
}

impl KeyPurpose {
    const fn derivation_context(self) -> &'static [u8] {
        match self {
            Self::PushTargets => b"seal of push targets",
            Self::Sessions => b"seal of sessions",
            Self::EarlierAnswers => b"seal of interactions",
        }
    }

    const fn description(self) -> &'static str {
        match self {
            Self::PushTargets => "a push target",
            Self::Sessions => "an id of a session",
            Self::EarlierAnswers => "an answer to an interaction",
        }
    }
}

/// Encryption under a key that is derived from the key of the instance.
#[derive(Debug, Clone)]
pub(crate) struct StoreCipher {
    cipher: seal::Cipher,
    purpose: KeyPurpose,
}

impl StoreCipher {
    /// Creates the seal of an instance for one purpose.
    pub(crate) fn new(instance_key: &[u8; 32], purpose: KeyPurpose) -> Self {
        Self { cipher: seal::Cipher::new(instance_key, purpose.derivation_context()), purpose }
    }

    /// Seals a text. The result opens only for the same `associated_data`, so that it cannot be moved to another row.
    pub(crate) fn seal(&self, associated_data: &[u8], text: &[u8]) -> sql::Result<Vec<u8>> {
        self.cipher.seal(associated_data, text).ok_or_else(|| {
            sql::Error::Encode(
                format!("{} is too long to be sealed", self.purpose.description()).into(),
            )
        })
    }

    /// Opens a text that was sealed for `associated_data`.
    pub(crate) fn unseal(&self, associated_data: &[u8], sealed: &[u8]) -> sql::Result<Vec<u8>> {
        self.cipher.unseal(associated_data, sealed).ok_or_else(|| {
            decode_error(format!(
                "{} does not open under this instance's key",
                self.purpose.description()
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_purpose_has_its_own_key() {
        let sealed =
            StoreCipher::new(&[7; 32], KeyPurpose::Sessions).seal(b"here", b"a secret").unwrap();
        assert!(StoreCipher::new(&[7; 32], KeyPurpose::Sessions).unseal(b"here", &sealed).is_ok());
        assert!(
            StoreCipher::new(&[7; 32], KeyPurpose::PushTargets).unseal(b"here", &sealed).is_err()
        );
    }
}
