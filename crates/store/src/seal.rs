//! Authenticated encryption of data that must not be on a disk in plain form.

use std::fmt;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Bytes of a nonce, which precedes the sealed text.
const NONCE_BYTES: usize = 24;

/// Cipher that seals and opens with a key that is derived from a secret for one purpose.
#[derive(Clone)]
pub struct Cipher {
    cipher: XChaCha20Poly1305,
}

impl fmt::Debug for Cipher {
    /// Hides the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

impl Cipher {
    /// Returns the seal of a secret. Another purpose has another key.
    pub fn new(secret: &[u8; 32], purpose: &[u8]) -> Self {
        Self { cipher: XChaCha20Poly1305::new(&derive_key(secret, purpose).into()) }
    }

    /// Seals a text, or returns `None` if it exceeds the limit of the cipher (256 GiB). The result opens only for the
    /// same `associated_data`, so that it cannot be moved to another row.
    pub fn seal(&self, associated_data: &[u8], text: &[u8]) -> Option<Vec<u8>> {
        let nonce = random_nonce();
        let payload = Payload { msg: text, aad: associated_data };
        let sealed = self.cipher.encrypt(XNonce::from_slice(&nonce), payload).ok()?;
        Some([&nonce[..], &sealed].concat())
    }

    /// Opens a text that was sealed for `associated_data` with this key; `None` if it was not, or was changed since.
    pub fn unseal(&self, associated_data: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_BYTES)?;
        let payload = Payload { msg: sealed, aad: associated_data };
        self.cipher.decrypt(XNonce::from_slice(nonce), payload).ok()
    }
}

/// Derives a key for one purpose, from which neither the secret nor another key can be computed.
pub fn derive_key(secret: &[u8; 32], purpose: &[u8]) -> [u8; 32] {
    let mut key = [0; 32];
    // An HMAC accepts a key of any length, so this never fails.
    if let Ok(mut mac) = <Hmac<Sha256> as Mac>::new_from_slice(secret) {
        mac.update(purpose);
        key = mac.finalize().into_bytes().into();
    }
    key
}

/// Returns a random secret: four version-4 UUIDs have 488 random bits from the system.
pub fn random_secret() -> [u8; 32] {
    hash_random_ids(4)
}

/// Returns a random nonce. Each of the hashed ids has 122 random bits from the system.
fn random_nonce() -> [u8; NONCE_BYTES] {
    let mut nonce = [0; NONCE_BYTES];
    nonce.iter_mut().zip(hash_random_ids(2)).for_each(|(target, byte)| *target = byte);
    nonce
}

fn hash_random_ids(id_count: usize) -> [u8; 32] {
    let mut hash = Sha256::new();
    (0..id_count).for_each(|_| hash.update(Uuid::new_v4()));
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_value_opens_only_with_its_key_and_context() {
        let cipher = Cipher::new(&[7; 32], b"sessions");
        let sealed = cipher.seal(b"here", b"a secret").unwrap();
        assert_eq!(cipher.unseal(b"here", &sealed).unwrap(), b"a secret");
        assert!(!sealed.windows(8).any(|part| part == b"a secret"));
        assert_ne!(cipher.seal(b"here", b"a secret").unwrap(), sealed, "a nonce is used once");

        assert!(cipher.unseal(b"there", &sealed).is_none());
        assert!(Cipher::new(&[8; 32], b"sessions").unseal(b"here", &sealed).is_none());
        assert!(Cipher::new(&[7; 32], b"inputs").unseal(b"here", &sealed).is_none());
        for index in 0..sealed.len() {
            let mut forged = sealed.clone();
            forged[index] ^= 1;
            assert!(cipher.unseal(b"here", &forged).is_none(), "byte {index}");
            assert!(cipher.unseal(b"here", &sealed[..index]).is_none(), "cut at {index}");
        }
    }

    #[test]
    fn no_secret_is_drawn_twice() {
        let secrets: std::collections::HashSet<_> = (0..100).map(|_| random_secret()).collect();
        assert_eq!(secrets.len(), 100);
    }
}
