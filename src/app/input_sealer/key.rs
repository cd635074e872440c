//! One key of sealed inputs, and the id by which a sealed text names it.

use algonius_store::seal::{Cipher, derive_key};

/// Key of sealed inputs.
pub(super) struct SealingKey {
    /// Name of the key in the texts that it sealed. The key cannot be computed from it.
    pub(super) id: [u8; 8],
    pub(super) cipher: Cipher,
}

impl SealingKey {
    pub(super) fn new(secret: &[u8; 32]) -> Self {
        let mut id = [0; 8];
        id.iter_mut()
            .zip(derive_key(secret, b"id of a key of inputs"))
            .for_each(|(to, from)| *to = from);
        Self { id, cipher: Cipher::new(secret, b"seal of inputs") }
    }
}
