//! What is known of the credentials under which agents work: agents of one account share it.
//!
//! It outlives the actors that tell it. After a restart it is known again from those who are parked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::watch;

use crate::decide::breaker::{Circuit, Event, standing, step};
use crate::decide::key::Keyring;
use crate::decide::quota::cause;
use crate::model::agent::AgentSpec;
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;
use crate::model::quota::{Cause, Credential, CredentialName};
use crate::model::record::Record;
use crate::model::status::CredentialStatus;
use crate::ports::clock::Clock;

/// Every credential that is of no use for now.
pub(crate) type Shut = BTreeMap<CredentialName, Circuit>;

/// The circuits of a service. Cheap to clone.
#[derive(Clone, Default)]
pub struct Circuits(Arc<watch::Sender<Shut>>);

impl Circuits {
    /// What of one credential is known.
    pub(crate) fn of(&self, name: &CredentialName) -> Option<Circuit> {
        self.0.borrow().get(name).copied()
    }

    /// Hears of all that changes.
    pub(crate) fn listen(&self) -> watch::Receiver<Shut> {
        self.0.subscribe()
    }

    /// A run of an agent failed. Only what the credential is to blame for is noted.
    pub(crate) fn failed(
        &self,
        (keyring, spec): (&Keyring, &AgentSpec),
        id: ExecutionId,
        failure: &Failure,
        clock: &dyn Clock,
    ) {
        let Some(cause) = cause(failure.code).filter(|_| spec.quota.breaker) else { return };
        self.fails((keyring, spec), id, (cause, failure.until), clock.now());
    }

    fn fails(
        &self,
        (keyring, spec): (&Keyring, &AgentSpec),
        id: ExecutionId,
        (cause, until): (Cause, Option<DateTime<Utc>>),
        now: DateTime<Utc>,
    ) {
        let usual = match cause {
            Cause::UsedUp => spec.quota.parking.usual,
            Cause::Refused => spec.quota.refused,
        };
        let name = credential(keyring, spec);
        tracing::warn!(agent = %spec.id, credential = %name, cause = cause.as_str(), "credential is of no use");
        self.tell(&name, Event::Failed { id, cause, until, usual, now });
    }

    /// How much longer requests to an agent may wait, because a quota is used up.
    pub(crate) fn grace(&self, keyring: &Keyring, spec: &AgentSpec) -> Duration {
        let known = self.of(&credential(keyring, spec)).filter(|_| spec.quota.breaker);
        let is_used_up = known.is_some_and(|circuit| circuit.cause == Cause::UsedUp);
        if is_used_up { spec.quota.parking.max } else { Duration::ZERO }
    }

    /// An execution of an agent was parked then, in an earlier life.
    pub(crate) fn recall(&self, (keyring, spec): (&Keyring, &AgentSpec), record: &Record) {
        if let Some(parked) = record.is_parked().filter(|_| spec.quota.breaker) {
            let why = (Cause::UsedUp, Some(parked.until));
            self.fails((keyring, spec), record.id, why, record.changed_at);
        }
    }

    /// A run of an agent was served.
    pub(crate) fn served(&self, name: &CredentialName, id: ExecutionId) {
        self.tell(name, Event::Served(id));
    }

    /// Lets one try a credential; `None` when nobody may, or somebody else does.
    pub(crate) fn probe(
        &self,
        name: &CredentialName,
        id: ExecutionId,
        now: DateTime<Utc>,
    ) -> Option<Probe> {
        let is_let = self.tell(name, Event::Try { id, now });
        is_let.then(|| Probe { name: name.clone(), id, circuits: self.clone() })
    }

    /// What was refused may be tried again: somebody has mended it.
    pub fn mended(&self) {
        let names: Vec<_> = self.0.borrow().keys().cloned().collect();
        for name in names {
            self.tell(&name, Event::Mended);
        }
    }

    /// Every credential that is of no use for now, as it is shown.
    #[must_use]
    pub fn status(&self, now: DateTime<Utc>) -> Vec<CredentialStatus> {
        let shut = self.0.borrow();
        let status = |(name, circuit): (&CredentialName, &Circuit)| CredentialStatus {
            name: name.clone(),
            cause: circuit.cause,
            state: standing(Some(circuit), now).as_str().to_owned(),
            since: circuit.since,
            until: circuit.until,
        };
        shut.iter().map(status).collect()
    }

    /// The only place where a circuit changes. Answers whether it did.
    fn tell(&self, name: &CredentialName, event: Event) -> bool {
        self.0.send_if_modified(|shut| {
            let before = shut.get(name).copied();
            let after = step(before, event);
            match after {
                Some(circuit) => _ = shut.insert(name.clone(), circuit),
                None => _ = shut.remove(name),
            }
            before != after
        })
    }
}

/// Somebody tries a credential. Dropped without a word it lets another try.
pub(crate) struct Probe {
    name: CredentialName,
    id: ExecutionId,
    circuits: Circuits,
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.circuits.tell(&self.name, Event::Left(self.id));
    }
}

/// The name of the credential of an agent. Of secrets it shows a digest under the key of this instance,
/// from which nothing can be guessed back.
pub(crate) fn credential(keyring: &Keyring, spec: &AgentSpec) -> CredentialName {
    CredentialName(match &spec.quota.credential {
        Credential::Own => format!("agent:{}", spec.id),
        Credential::Named(name) => name.clone(),
        Credential::Secret(digest) => format!("key:{}", keyring.credential(digest)),
    })
}
