//! What every actor of the tree is given.

use std::sync::Arc;

use crate::decide::key::Keyring;
use crate::decide::redact::Redactor;
use crate::lookout::Lookout;
use crate::ports::clock::Clock;
use crate::ports::ledger::Ledger;
use crate::ports::observer::Observer;
use crate::turns::Turns;

/// The world as the tree knows it, the two keepers of secrets, and what all agents share.
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
    /// Is told what is over.
    pub observer: Arc<dyn Observer>,
    /// The way to whoever watches.
    pub lookout: Lookout,
    /// Who waits for a workspace, of all agents.
    pub turns: Turns,
}
