//! What every actor of the tree is given.

use std::sync::Arc;

use tokio::sync::watch;

pub use crate::circuits::Circuits;
use crate::decide::key::Keyring;
use crate::decide::redact::Redactor;
use crate::lookout::Lookout;
use crate::model::agent::AgentSpec;
pub use crate::pens::Pens;
use crate::ports::clock::Clock;
use crate::ports::history::History;
use crate::ports::ledger::Ledger;
use crate::ports::observer::Observer;
pub use crate::report::Purses;
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
    pub redactor: Masking,
    /// Makes keys of requests.
    pub keyring: Keyring,
    /// Is told what is over.
    pub observer: Arc<dyn Observer>,
    /// The way to whoever watches.
    pub lookout: Lookout,
    /// Who waits for a workspace, of all agents.
    pub turns: Turns,
    /// Who writes what executions do.
    pub pens: Pens,
    /// What is known of the credentials of agents.
    pub circuits: Circuits,
    /// What each agent has used up today.
    pub purses: Purses,
}

impl Kit {
    /// Tells whoever watches how much of its day's budget an agent has used up.
    pub(crate) fn tell_spent(&self, spec: &AgentSpec) {
        if let Some(sighting) = self.purses.sighting(spec, &*self.clock) {
            self.lookout.see(sighting);
        }
    }
}

/// The redactor that is in force. Cheap to clone. Whoever masks a stream keeps the one that it began
/// with.
#[derive(Clone)]
pub struct Masking(watch::Receiver<Arc<Redactor>>);

impl Masking {
    /// One that is replaced by whoever holds the other end.
    #[must_use]
    pub const fn of(redactor: watch::Receiver<Arc<Redactor>>) -> Self {
        Self(redactor)
    }

    /// One that stays.
    #[must_use]
    pub fn fixed(redactor: Arc<Redactor>) -> Self {
        Self(watch::channel(redactor).1)
    }

    /// As it is now.
    #[must_use]
    pub fn now(&self) -> Arc<Redactor> {
        Arc::clone(&self.0.borrow())
    }
}
