//! Gate of an agent's credential. While the credential is unusable, no execution starts, and later one probe starts
//! first. Waiting executions stay in the queue; the time of an exhausted quota does not count for the queue timeout.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::AgentArgs;
use crate::decide::retry::breaker::TrippedBreaker;
use crate::model::agent::queue::QueueReason;
use crate::model::agent::quota::CredentialName;
use crate::model::id::ExecutionId;
use crate::services::credential_breakers::BreakerProbe;

/// Gate of an agent's credential.
pub(super) struct CredentialGate {
    /// Display name of the credential.
    credential: CredentialName,
    block: Option<CredentialBlock>,
}

/// State of an unusable credential.
#[derive(Debug, Clone, Copy)]
struct CredentialBlock {
    breaker: TrippedBreaker,
    /// Time since when the credential is unusable for this actor.
    since: Instant,
}

/// Change of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GateChange {
    /// The credential is still usable.
    Unchanged,
    /// The credential is unusable.
    Blocked,
    /// The credential is usable again.
    Unblocked {
        /// Time since when queue timeouts were suspended, if the cause passes without an operator.
        timeouts_paused_since: Option<Instant>,
    },
}

/// Cause that keeps all entries of a queue from starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WaitCause {
    /// Reason that a waiting execution shows.
    pub(super) reason: QueueReason,
    /// Expected end, if it is in the future.
    pub(super) until: Option<DateTime<Utc>>,
}

impl CredentialGate {
    /// Creates the open gate of a credential.
    pub(super) const fn new(credential: CredentialName) -> Self {
        Self { credential, block: None }
    }

    /// Replaces the credential. The state of the new one follows with the next [`Self::refresh`].
    pub(super) fn replace_credential(&mut self, credential: CredentialName) {
        self.credential = credential;
    }

    /// Applies the present state of the credential.
    pub(super) fn refresh(&mut self, args: &AgentArgs, now: Instant) -> GateChange {
        let breaker = args.services.breakers.tripped_breaker(&self.credential);
        self.update(breaker.filter(|_| args.spec.quota.has_breaker), now)
    }

    /// Requests that an execution may probe the unusable credential.
    pub(super) fn request_probe(&self, args: &AgentArgs, id: ExecutionId) -> Option<BreakerProbe> {
        let services = self.block.map(|_| &args.services)?;
        services.breakers.request_probe(&self.credential, id, services.clock.now())
    }

    /// Returns the cause that keeps the whole queue from starting, apart from the slots.
    pub(super) fn wait_cause(&self, args: &AgentArgs) -> Option<WaitCause> {
        if args.spec.unavailable_failure().is_some() {
            return Some(WaitCause { reason: QueueReason::ProgramMissing, until: None });
        }
        self.block?; // A usable credential needs no clock, which each change of the queue would read.
        self.credential_wait_cause(args.services.clock.now())
    }

    /// Returns the extra queue time because of a limited account.
    pub(super) fn extra_queue_time(&self, args: &AgentArgs) -> Duration {
        self.timeout_extension(args.spec.quota.deferral_policy.max_wait)
    }

    /// Returns the queue deadline of an entry that waits since `since`.
    pub(super) fn queue_deadline(&self, args: &AgentArgs, since: DateTime<Utc>) -> Instant {
        let breaker = args.services.breakers.tripped_breaker(&self.credential);
        args.queue_deadline(wait_without_exhausted_quota(breaker, since, args.services.clock.now()))
    }

    /// Applies the present state of the credential, which is `None` if it is usable.
    fn update(&mut self, breaker: Option<TrippedBreaker>, now: Instant) -> GateChange {
        match (self.block.take(), breaker) {
            (None, None) => GateChange::Unchanged,
            (Some(previous), None) => {
                let is_temporary = previous.breaker.cause.is_temporary();
                GateChange::Unblocked {
                    timeouts_paused_since: is_temporary.then_some(previous.since),
                }
            }
            (previous, Some(breaker)) => {
                let since = previous.map_or(now, |previous| previous.since);
                self.block = Some(CredentialBlock { breaker, since });
                GateChange::Blocked
            }
        }
    }

    /// Returns the extra queue time because of a limited account, which is at most `max_extension`.
    fn timeout_extension(&self, max_extension: Duration) -> Duration {
        let is_temporary = self.block.is_some_and(|block| block.breaker.cause.is_temporary());
        if is_temporary { max_extension } else { Duration::ZERO }
    }

    /// Returns the unusable credential as the cause of the wait; `None` while the credential is usable.
    fn credential_wait_cause(&self, now: DateTime<Utc>) -> Option<WaitCause> {
        let breaker = self.block?.breaker;
        let until = Some(breaker.until).filter(|until| *until > now);
        Some(WaitCause { reason: breaker.cause.queue_reason(), until })
    }
}

/// Returns the time of a wait from `since` until `now`, without the time of an exhausted quota.
fn wait_without_exhausted_quota(
    breaker: Option<TrippedBreaker>,
    since: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Duration {
    let elapsed_until = |end: DateTime<Utc>| (end - since).to_std().unwrap_or_default();
    match breaker {
        Some(breaker) if breaker.cause.is_temporary() => {
            elapsed_until(breaker.since).min(elapsed_until(now))
        }
        _ => elapsed_until(now),
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::model::agent::quota::DeferralCause;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn breaker(cause: DeferralCause) -> TrippedBreaker {
        let since = DateTime::UNIX_EPOCH;
        TrippedBreaker {
            cause,
            since,
            until: since + TimeDelta::hours(1),
            probe: None,
            failed_probes: 0,
        }
    }

    fn gate() -> CredentialGate {
        CredentialGate::new(CredentialName("agent:a".to_owned()))
    }

    #[tokio::test]
    async fn a_quota_suspends_timeouts_since_its_first_report() {
        let (mut gate, first) = (gate(), Instant::now());
        assert_eq!(gate.update(None, first), GateChange::Unchanged);
        let tripped_breaker = Some(breaker(DeferralCause::QuotaExhausted));
        assert_eq!(gate.update(tripped_breaker, first), GateChange::Blocked);
        assert_eq!(gate.update(tripped_breaker, first + HOUR), GateChange::Blocked);
        assert!(gate.block.is_some());
        assert_eq!(gate.timeout_extension(HOUR), HOUR);
        let unblocked = GateChange::Unblocked { timeouts_paused_since: Some(first) };
        assert_eq!(gate.update(None, first + HOUR), unblocked);
        assert!(gate.block.is_none());
        assert_eq!(gate.timeout_extension(HOUR), Duration::ZERO);
    }

    #[tokio::test]
    async fn a_rejected_credential_suspends_no_timeout() {
        let (mut gate, now) = (gate(), Instant::now());
        gate.update(Some(breaker(DeferralCause::CredentialRefused)), now);
        assert_eq!(gate.timeout_extension(HOUR), Duration::ZERO);
        assert_eq!(gate.update(None, now), GateChange::Unblocked { timeouts_paused_since: None });
    }

    #[tokio::test]
    async fn a_past_end_of_the_block_is_not_shown() {
        let mut gate = gate();
        assert_eq!(gate.credential_wait_cause(DateTime::UNIX_EPOCH), None);
        let tripped_breaker = breaker(DeferralCause::RateLimited);
        gate.update(Some(tripped_breaker), Instant::now());
        let reason = QueueReason::RateLimited;
        let expected = WaitCause { reason, until: Some(tripped_breaker.until) };
        assert_eq!(gate.credential_wait_cause(DateTime::UNIX_EPOCH), Some(expected));
        assert_eq!(
            gate.credential_wait_cause(tripped_breaker.until),
            Some(WaitCause { reason, until: None })
        );
    }

    #[test]
    fn the_time_of_an_exhausted_quota_does_not_count() {
        let (since, now) = (DateTime::UNIX_EPOCH, DateTime::UNIX_EPOCH + TimeDelta::hours(2));
        let later_breaker =
            |cause| TrippedBreaker { since: since + TimeDelta::hours(1), ..breaker(cause) };
        assert_eq!(wait_without_exhausted_quota(None, since, now), 2 * HOUR);
        let refused = later_breaker(DeferralCause::CredentialRefused);
        assert_eq!(wait_without_exhausted_quota(Some(refused), since, now), 2 * HOUR);
        assert_eq!(
            wait_without_exhausted_quota(
                Some(later_breaker(DeferralCause::QuotaExhausted)),
                since,
                now
            ),
            HOUR
        );
        assert_eq!(
            wait_without_exhausted_quota(None, now, since),
            Duration::ZERO,
            "a clock that was set back"
        );
    }
}
