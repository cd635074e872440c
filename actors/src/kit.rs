//! What every actor of the tree is given.

use std::sync::Arc;

use crate::decide::key::Keyring;
use crate::decide::redact::Redactor;
use crate::ports::clock::Clock;
use crate::ports::ledger::Ledger;

/// The world as the tree knows it, and the two keepers of secrets.
#[derive(Clone)]
pub struct Kit {
    /// The truth.
    pub ledger: Arc<dyn Ledger>,
    /// Wall time.
    pub clock: Arc<dyn Clock>,
    /// Masks secrets.
    pub redactor: Arc<Redactor>,
    /// Makes keys of requests.
    pub keyring: Keyring,
}
