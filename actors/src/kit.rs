//! What every actor of the tree is given.

use std::sync::Arc;

use crate::decide::key::Keyring;
use crate::decide::redact::Redactor;
use crate::ports::clock::Clock;
use crate::ports::history::History;
use crate::ports::ledger::Ledger;
use crate::turns::Turns;

/// The world as the tree knows it, the two keepers of secrets, and what all agents share.
#[derive(Clone)]
pub struct Kit {
    /// The truth.
    pub ledger: Arc<dyn Ledger>,
    /// What is kept of it.
    pub history: Arc<dyn History>,
    /// Wall time.
    pub clock: Arc<dyn Clock>,
    /// Masks secrets.
    pub redactor: Arc<Redactor>,
    /// Makes keys of requests.
    pub keyring: Keyring,
    /// Who waits for a workspace, of all agents.
    pub turns: Turns,
}
