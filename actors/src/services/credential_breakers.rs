//! Circuit breakers of the credentials under which agents work: agents of one account share a breaker.
//!
//! The breakers outlive the actors that report to them. After a restart they are restored from deferred executions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::watch;

use crate::decide::admission::keyed_hasher::KeyedHasher;
use crate::decide::retry::breaker::{
    BreakerEvent, BreakerState, TrippedBreaker, apply_breaker_event, breaker_state,
};
use crate::decide::retry::deferral::{deferral_cause, first_wait};
use crate::model::agent::AgentSpec;
use crate::model::agent::quota::{CredentialName, DeferralCause, QuotaCredential};
use crate::model::execution::record::ExecutionRecord;
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;
use crate::model::observation::account_status::{AccountState, AccountStatus, CredentialStatus};
use crate::ports::clock::Clock;

/// Unusable credentials.
pub(crate) type TrippedBreakers = BTreeMap<CredentialName, TrippedBreaker>;

/// Circuit breakers of a service. Clones are cheap.
#[derive(Clone, Default)]
pub struct CredentialBreakers(Arc<watch::Sender<TrippedBreakers>>);

impl CredentialBreakers {
    /// Returns the state of one credential, if it is unusable.
    pub(crate) fn tripped_breaker(&self, name: &CredentialName) -> Option<TrippedBreaker> {
        self.0.borrow().get(name).copied()
    }

    /// Returns a receiver of all changes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<TrippedBreakers> {
        self.0.subscribe()
    }

    /// Reports a failed run of an agent. Only failures because of the credential have an effect.
    pub(crate) fn record_failure(
        &self,
        (keyed_hasher, spec): (&KeyedHasher, &AgentSpec),
        id: ExecutionId,
        failure: &Failure,
        clock: &dyn Clock,
    ) {
        let cause = deferral_cause(failure.code).filter(|cause| cause.blocks_account());
        let Some(cause) = cause.filter(|_| spec.quota.has_breaker) else { return };
        self.apply_failure((keyed_hasher, spec), id, (cause, failure.until), clock.now());
    }

    fn apply_failure(
        &self,
        (keyed_hasher, spec): (&KeyedHasher, &AgentSpec),
        id: ExecutionId,
        (cause, until): (DeferralCause, Option<DateTime<Utc>>),
        now: DateTime<Utc>,
    ) {
        let default_wait = match cause {
            DeferralCause::CredentialRefused => spec.quota.credential_refusal_pause,
            cause => first_wait(cause, &spec.quota.deferral_policy),
        };
        let name = credential_name(keyed_hasher, spec);
        tracing::warn!(agent = %spec.id, credential = %name, cause = cause.as_str(), "credential is unusable");
        self.apply(&name, BreakerEvent::ExecutionFailed { id, cause, until, default_wait, now });
    }

    /// Returns the extra queue time for an agent, because its account is limited.
    pub(crate) fn extra_queue_time(
        &self,
        keyed_hasher: &KeyedHasher,
        spec: &AgentSpec,
    ) -> Duration {
        let breaker = self
            .tripped_breaker(&credential_name(keyed_hasher, spec))
            .filter(|_| spec.quota.has_breaker);
        let is_temporary = breaker.is_some_and(|breaker| breaker.cause.is_temporary());
        if is_temporary { spec.quota.deferral_policy.max_wait } else { Duration::ZERO }
    }

    /// Restores the state from an execution that was deferred in an earlier process.
    pub(crate) fn restore_block(
        &self,
        (keyed_hasher, spec): (&KeyedHasher, &AgentSpec),
        record: &ExecutionRecord,
    ) {
        let deferral = record.deferral().filter(|deferral| deferral.cause.blocks_account());
        if let Some(deferral) = deferral.filter(|_| spec.quota.has_breaker) {
            let block = (deferral.cause, Some(deferral.until));
            self.apply_failure((keyed_hasher, spec), record.id, block, record.changed_at);
        }
    }

    /// Reports a run that was served with the credential.
    pub(crate) fn record_success(&self, name: &CredentialName, id: ExecutionId) {
        self.apply(name, BreakerEvent::ExecutionSucceeded(id));
    }

    /// Requests to probe a credential; `None` if no probe is permitted, or another one runs.
    pub(crate) fn request_probe(
        &self,
        name: &CredentialName,
        id: ExecutionId,
        now: DateTime<Utc>,
    ) -> Option<BreakerProbe> {
        let is_permitted = self.apply(name, BreakerEvent::ProbeRequested { id, now });
        is_permitted.then(|| BreakerProbe { name: name.clone(), id, breakers: self.clone() })
    }

    /// Allows retries with rejected credentials, because they were repaired.
    pub fn reset_rejected_credentials(&self) {
        let names: Vec<_> = self.0.borrow().keys().cloned().collect();
        for name in names {
            self.apply(&name, BreakerEvent::CredentialRepaired);
        }
    }

    /// Unblocks an account, regardless of the cause. Returns true if it was blocked.
    #[must_use]
    pub fn unblock(&self, name: &CredentialName) -> bool {
        self.apply(name, BreakerEvent::ClosedByOperator)
    }

    /// Returns the accounts of these agents, with their states.
    pub(crate) fn account_statuses<'s>(
        &self,
        keyed_hasher: &KeyedHasher,
        specs: impl IntoIterator<Item = &'s AgentSpec>,
        now: DateTime<Utc>,
    ) -> Vec<AccountStatus> {
        let mut agents: BTreeMap<CredentialName, Vec<_>> = BTreeMap::new();
        for spec in specs {
            agents.entry(credential_name(keyed_hasher, spec)).or_default().push(spec.id.clone());
        }
        let tripped_breakers = self.0.borrow();
        let status = |(account, agents)| {
            let breaker = tripped_breakers.get(&account);
            let state = match breaker_state(breaker, now) {
                BreakerState::Closed => AccountState::Available,
                BreakerState::Open => AccountState::Blocked,
                BreakerState::HalfOpen | BreakerState::Probing => AccountState::Probing,
            };
            let (cause, since) =
                (breaker.map(|breaker| breaker.cause), breaker.map(|breaker| breaker.since));
            let until = breaker.map(|breaker| breaker.until);
            AccountStatus { account, agents, state, cause, since, until }
        };
        agents.into_iter().map(status).collect()
    }

    /// Returns the status of every unusable credential.
    #[must_use]
    pub fn unusable_credential_statuses(&self, now: DateTime<Utc>) -> Vec<CredentialStatus> {
        let tripped_breakers = self.0.borrow();
        let status = |(name, breaker): (&CredentialName, &TrippedBreaker)| CredentialStatus {
            name: name.clone(),
            cause: breaker.cause,
            state: breaker_state(Some(breaker), now).as_str().to_owned(),
            since: breaker.since,
            until: breaker.until,
        };
        tripped_breakers.iter().map(status).collect()
    }

    /// Applies an event to a breaker. No other function changes a breaker. Returns true if it changed.
    fn apply(&self, name: &CredentialName, event: BreakerEvent) -> bool {
        self.0.send_if_modified(|tripped_breakers| {
            let before = tripped_breakers.get(name).copied();
            let after = apply_breaker_event(before, event);
            match after {
                Some(breaker) => _ = tripped_breakers.insert(name.clone(), breaker),
                None => _ = tripped_breakers.remove(name),
            }
            before != after
        })
    }
}

/// Probe of a credential. Dropping it without a report permits another probe.
pub(crate) struct BreakerProbe {
    name: CredentialName,
    id: ExecutionId,
    breakers: CredentialBreakers,
}

impl Drop for BreakerProbe {
    fn drop(&mut self) {
        self.breakers.apply(&self.name, BreakerEvent::ProbeReleased(self.id));
    }
}

/// Returns the display name of an agent's credential. Secrets appear as a digest with the key of this instance, from
/// which they cannot be guessed.
pub(crate) fn credential_name(keyed_hasher: &KeyedHasher, spec: &AgentSpec) -> CredentialName {
    CredentialName(match &spec.quota.credential {
        QuotaCredential::Own => format!("agent:{}", spec.id),
        QuotaCredential::Named(name) => name.clone(),
        QuotaCredential::SecretDigest(digest) => {
            format!("key:{}", keyed_hasher.credential_fingerprint(digest))
        }
    })
}
