//! Sealing of what must not stand in the database as it is.

use std::fmt;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::fault::unreadable;
use super::sql;

/// Bytes of a nonce, which stands before what it sealed.
const NONCE: usize = 24;

/// What a key is for; another purpose gets another key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    /// Addresses and credentials of push targets.
    PushTargets,
    /// Ids by which programs know their sessions.
    Sessions,
}

impl Purpose {
    const fn word(self) -> &'static [u8] {
        match self {
            Self::PushTargets => b"seal of push targets",
            Self::Sessions => b"seal of sessions",
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            Self::PushTargets => "a push target",
            Self::Sessions => "an id of a session",
        }
    }
}

/// Seals and opens under a key that is derived from the instance's.
#[derive(Clone)]
pub(super) struct Seal {
    cipher: XChaCha20Poly1305,
    purpose: Purpose,
}

impl fmt::Debug for Seal {
    /// Hides the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    /// The seal of an instance for one purpose.
    pub(super) fn new(instance_key: &[u8; 32], purpose: Purpose) -> Self {
        let mut key = [0; 32];
        // An HMAC takes a key of any length, so there always is one.
        if let Ok(mut mac) = <Hmac<Sha256> as Mac>::new_from_slice(instance_key) {
            mac.update(purpose.word());
            key = mac.finalize().into_bytes().into();
        }
        Self { cipher: XChaCha20Poly1305::new(&key.into()), purpose }
    }

    /// Seals a text. It opens only for the same `place`, so that no row can take another's.
    pub(super) fn close(&self, place: &[u8], text: &[u8]) -> sql::Result<Vec<u8>> {
        let nonce = nonce();
        let payload = Payload { msg: text, aad: place };
        let sealed = self.cipher.encrypt(XNonce::from_slice(&nonce), payload);
        let sealed = sealed.map_err(|_too_long| {
            sql::Error::Encode(format!("{} is too long to be sealed", self.purpose.noun()).into())
        })?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// Opens what was sealed for `place`.
    pub(super) fn open(&self, place: &[u8], sealed: &[u8]) -> sql::Result<Vec<u8>> {
        let broken = || {
            unreadable(format!("{} does not open under this instance's key", self.purpose.noun()))
        };
        let (nonce, sealed) = sealed.split_at_checked(NONCE).ok_or_else(broken)?;
        let payload = Payload { msg: sealed, aad: place };
        let opened = self.cipher.decrypt(XNonce::from_slice(nonce), payload);
        opened.map_err(|_forged| broken())
    }
}

/// Draws a nonce. Each of the hashed ids has 122 random bits from the system.
fn nonce() -> [u8; NONCE] {
    let mut hash = Sha256::new();
    for _ in 0..2 {
        hash.update(Uuid::new_v4());
    }
    let drawn: [u8; 32] = hash.finalize().into();
    let mut nonce = [0; NONCE];
    nonce.iter_mut().zip(drawn).for_each(|(place, byte)| *place = byte);
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_in_its_place_under_its_key_unchanged() {
        let seal = Seal::new(&[7; 32], Purpose::Sessions);
        let closed = seal.close(b"here", b"a secret").unwrap();
        assert_eq!(seal.open(b"here", &closed).unwrap(), b"a secret");
        assert!(!closed.windows(8).any(|part| part == b"a secret"));
        assert_ne!(seal.close(b"here", b"a secret").unwrap(), closed, "a nonce is used once");

        assert!(seal.open(b"there", &closed).is_err());
        assert!(Seal::new(&[8; 32], Purpose::Sessions).open(b"here", &closed).is_err());
        assert!(Seal::new(&[7; 32], Purpose::PushTargets).open(b"here", &closed).is_err());
        for at in 0..closed.len() {
            let mut forged = closed.clone();
            forged[at] ^= 1;
            assert!(seal.open(b"here", &forged).is_err(), "byte {at}");
            assert!(seal.open(b"here", &closed[..at]).is_err(), "cut at {at}");
        }
    }
}
