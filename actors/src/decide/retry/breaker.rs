//! Circuit breaker of a credential: blocks starts while the credential is known to be unusable, and then admits one
//! probe.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::deferral::doubled_wait;
use crate::model::agent::quota::DeferralCause;
use crate::model::id::ExecutionId;

/// Longest block: the credential is probed once in this time, whatever the provider states.
const MAX_BLOCK_DURATION: TimeDelta = TimeDelta::hours(24);

/// Tolerance for clock changes: a clock that was set back by more than this ends the block.
const CLOCK_TOLERANCE: TimeDelta = TimeDelta::minutes(1);

/// State of an unusable credential. A usable credential has no state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrippedBreaker {
    /// Cause of the block.
    pub cause: DeferralCause,
    /// Start time of the block.
    pub since: DateTime<Utc>,
    /// End time of the block.
    pub until: DateTime<Utc>,
    /// Execution that probes the credential.
    pub probe: Option<ExecutionId>,
    /// Number of failed probes.
    pub failed_probes: u32,
}

/// Event of the circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerEvent {
    /// An execution failed because of the credential.
    ExecutionFailed {
        /// Id of the execution.
        id: ExecutionId,
        /// Cause of the failure.
        cause: DeferralCause,
        /// End time of the condition, if known.
        until: Option<DateTime<Utc>>,
        /// First block duration if the end time is unknown.
        default_wait: Duration,
        /// Present time.
        now: DateTime<Utc>,
    },
    /// An execution requests to probe the credential.
    ProbeRequested {
        /// Id of the execution.
        id: ExecutionId,
        /// Present time.
        now: DateTime<Utc>,
    },
    /// An execution was served with the credential.
    ExecutionSucceeded(ExecutionId),
    /// An execution ended or was deferred.
    ProbeReleased(ExecutionId),
    /// The rejected credential was repaired.
    CredentialRepaired,
    /// An operator closes the breaker, regardless of the cause.
    ClosedByOperator,
}

/// State of the circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// All executions may start.
    Closed,
    /// No execution may start.
    Open,
    /// One execution may start as a probe.
    HalfOpen,
    /// No execution may start: one execution probes the credential.
    Probing,
}

impl BreakerState {
    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
            Self::Probing => "tried",
        }
    }
}

/// Returns the state of the breaker at a time.
#[must_use]
pub fn breaker_state(breaker: Option<&TrippedBreaker>, now: DateTime<Utc>) -> BreakerState {
    match breaker {
        None => BreakerState::Closed,
        Some(TrippedBreaker { probe: Some(_), .. }) => BreakerState::Probing,
        Some(TrippedBreaker { since, until, .. })
            if now < *until && now >= *since - CLOCK_TOLERANCE =>
        {
            BreakerState::Open
        }
        Some(_) => BreakerState::HalfOpen,
    }
}

/// Decides the next state of the breaker for an event.
#[must_use]
pub fn apply_breaker_event(
    breaker: Option<TrippedBreaker>,
    event: BreakerEvent,
) -> Option<TrippedBreaker> {
    match event {
        BreakerEvent::ExecutionFailed { id, cause, until, default_wait, now } => {
            let is_probe = breaker.is_some_and(|breaker| breaker.probe == Some(id));
            let failed_probes =
                breaker.map_or(0, |breaker| breaker.failed_probes + u32::from(is_probe));
            let until = until.or_else(|| add_wait(now, doubled_wait(default_wait, failed_probes)));
            let until = until.unwrap_or(DateTime::<Utc>::MAX_UTC).min(now + MAX_BLOCK_DURATION);
            Some(merge_failure(
                breaker.filter(|_| !is_probe),
                TrippedBreaker { cause, since: now, until, probe: None, failed_probes },
            ))
        }
        BreakerEvent::ProbeRequested { id, now }
            if breaker_state(breaker.as_ref(), now) == BreakerState::HalfOpen =>
        {
            breaker.map(|breaker| TrippedBreaker { probe: Some(id), ..breaker })
        }
        BreakerEvent::ExecutionSucceeded(id) => breaker.filter(|breaker| breaker.probe != Some(id)),
        BreakerEvent::ProbeReleased(id) => breaker.map(|breaker| TrippedBreaker {
            probe: breaker.probe.filter(|probe| *probe != id),
            ..breaker
        }),
        BreakerEvent::CredentialRepaired => {
            breaker.filter(|breaker| breaker.cause != DeferralCause::CredentialRefused)
        }
        BreakerEvent::ClosedByOperator => None,
        BreakerEvent::ProbeRequested { .. } => breaker,
    }
}

/// Merges a failure into a tripped breaker: the later end time applies, and a running probe continues.
fn merge_failure(before: Option<TrippedBreaker>, new: TrippedBreaker) -> TrippedBreaker {
    match before {
        None => new,
        Some(before) => TrippedBreaker {
            // The short rate limit of a late execution must not hide a quota that lasts for hours.
            cause: if new.until >= before.until { new.cause } else { before.cause },
            since: before.since.min(new.since),
            until: before.until.max(new.until),
            ..before
        },
    }
}

fn add_wait(now: DateTime<Utc>, wait: Duration) -> Option<DateTime<Utc>> {
    now.checked_add_signed(TimeDelta::from_std(wait).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    fn execution_id(id: u128) -> ExecutionId {
        ExecutionId(uuid::Uuid::from_u128(id))
    }

    fn failure_event(id: u128, now: i64, until: Option<i64>) -> BreakerEvent {
        let default_wait = Duration::from_secs(100);
        let (id, until) = (execution_id(id), until.map(at));
        BreakerEvent::ExecutionFailed {
            id,
            cause: DeferralCause::QuotaExhausted,
            until,
            default_wait,
            now: at(now),
        }
    }

    fn breaker_after(events: &[BreakerEvent]) -> Option<TrippedBreaker> {
        events.iter().fold(None, |breaker, event| apply_breaker_event(breaker, *event))
    }

    fn state_after(events: &[BreakerEvent], now: i64) -> BreakerState {
        breaker_state(breaker_after(events).as_ref(), at(now))
    }

    #[test]
    fn an_open_breaker_admits_one_probe_after_the_pause() {
        let (failure, probe_request) = (
            failure_event(1, 0, Some(60)),
            BreakerEvent::ProbeRequested { id: execution_id(2), now: at(60) },
        );
        assert_eq!(state_after(&[failure], 59), BreakerState::Open);
        assert_eq!(state_after(&[failure], 60), BreakerState::HalfOpen);
        assert_eq!(
            state_after(
                &[failure, BreakerEvent::ProbeRequested { id: execution_id(2), now: at(59) }],
                60
            ),
            BreakerState::HalfOpen
        );
        assert_eq!(state_after(&[failure, probe_request], 60), BreakerState::Probing);
        let other = BreakerEvent::ProbeRequested { id: execution_id(3), now: at(60) };
        assert_eq!(
            breaker_after(&[failure, probe_request, other]).unwrap().probe,
            Some(execution_id(2))
        );
        assert_eq!(
            state_after(
                &[failure, probe_request, BreakerEvent::ExecutionSucceeded(execution_id(9))],
                60
            ),
            BreakerState::Probing
        );
        assert_eq!(
            state_after(
                &[failure, probe_request, BreakerEvent::ExecutionSucceeded(execution_id(2))],
                60
            ),
            BreakerState::Closed
        );
    }

    #[test]
    fn a_failed_probe_reopens_and_an_abandoned_one_frees_the_slot() {
        let (failure, probe_request) = (
            failure_event(1, 0, Some(60)),
            BreakerEvent::ProbeRequested { id: execution_id(2), now: at(60) },
        );
        let reopening = [failure, probe_request, failure_event(2, 61, Some(90))];
        assert_eq!(
            (state_after(&reopening, 89), state_after(&reopening, 90)),
            (BreakerState::Open, BreakerState::HalfOpen)
        );
        assert_eq!(
            state_after(
                &[failure, probe_request, BreakerEvent::ProbeReleased(execution_id(2))],
                60
            ),
            BreakerState::HalfOpen
        );
        assert_eq!(
            state_after(
                &[failure, probe_request, BreakerEvent::ProbeReleased(execution_id(3))],
                60
            ),
            BreakerState::Probing
        );
    }

    #[test]
    fn an_unknown_pause_doubles_after_a_failed_probe() {
        let first_failure = failure_event(1, 0, None);
        assert_eq!(breaker_after(&[first_failure]).unwrap().until, at(100));
        let probe_request = BreakerEvent::ProbeRequested { id: execution_id(2), now: at(100) };
        assert_eq!(
            breaker_after(&[first_failure, probe_request, failure_event(2, 100, None)])
                .unwrap()
                .until,
            at(300)
        );
        // Executions that were already in progress bring no new information.
        assert_eq!(
            breaker_after(&[first_failure, failure_event(3, 1, None)]).unwrap().until,
            at(101)
        );
    }

    #[test]
    fn the_later_end_of_a_pause_counts_up_to_one_day() {
        assert_eq!(
            breaker_after(&[failure_event(1, 0, Some(60)), failure_event(2, 1, Some(30))])
                .unwrap()
                .until,
            at(60)
        );
        assert_eq!(breaker_after(&[failure_event(1, 0, Some(900_000))]).unwrap().until, at(86_400));
    }

    #[test]
    fn a_clock_set_back_allows_a_probe() {
        assert_eq!(state_after(&[failure_event(1, 0, Some(60))], -30), BreakerState::Open);
        assert_eq!(state_after(&[failure_event(1, 0, Some(60))], -3600), BreakerState::HalfOpen);
    }

    #[test]
    fn only_a_refused_credential_can_be_repaired() {
        let used_up = failure_event(1, 0, Some(60));
        let BreakerEvent::ExecutionFailed { id, until, default_wait, now, .. } = used_up else {
            unreachable!()
        };
        let refused = BreakerEvent::ExecutionFailed {
            id,
            cause: DeferralCause::CredentialRefused,
            until,
            default_wait,
            now,
        };
        assert_eq!(
            state_after(&[refused, BreakerEvent::CredentialRepaired], 1),
            BreakerState::Closed
        );
        assert_eq!(
            state_after(&[used_up, BreakerEvent::CredentialRepaired], 1),
            BreakerState::Open
        );
    }

    #[test]
    fn an_operator_closes_a_breaker_with_any_cause() {
        let quota_failure = failure_event(1, 0, Some(3600));
        let BreakerEvent::ExecutionFailed { default_wait, .. } = quota_failure else {
            unreachable!()
        };
        let (id, until, now) = (execution_id(2), Some(at(20)), at(1));
        let rate_limit = BreakerEvent::ExecutionFailed {
            id,
            cause: DeferralCause::RateLimited,
            until,
            default_wait,
            now,
        };
        let breaker = breaker_after(&[quota_failure, rate_limit]).unwrap();
        assert_eq!((breaker.cause, breaker.until), (DeferralCause::QuotaExhausted, at(3600)));
        assert_eq!(
            breaker_after(&[rate_limit, quota_failure]).unwrap().cause,
            DeferralCause::QuotaExhausted
        );
        assert_eq!(
            state_after(&[quota_failure, BreakerEvent::ClosedByOperator], 1),
            BreakerState::Closed
        );
        assert_eq!(
            state_after(&[rate_limit, BreakerEvent::CredentialRepaired], 1),
            BreakerState::Open
        );
    }

    fn event_parameters() -> impl Strategy<Value = (i64, u8, u128, i64)> {
        (0i64..50, 0u8..5, 0u128..4, 0i64..200)
    }

    proptest! {
        /// For any sequence of events, at most one execution probes, only the admitted probe closes the breaker, and
        /// the breaker never stays open past the latest reported time.
        #[test]
        fn at_most_one_probe_runs_and_no_pause_is_lost(steps in proptest::collection::vec(event_parameters(), 0..60)) {
            let (mut breaker, mut now, mut latest): (Option<TrippedBreaker>, i64, i64) = (None, 0, 0);
            for (elapsed, kind, id, retry_after) in steps {
                now += elapsed;
                let state_before = breaker_state(breaker.as_ref(), at(now));
                let breaker_before = breaker;
                let event = match kind {
                    0 => {
                        latest = latest.max(now + retry_after);
                        failure_event(id, now, Some(now + retry_after))
                    }
                    1 => BreakerEvent::ProbeRequested { id: execution_id(id), now: at(now) },
                    2 => BreakerEvent::ExecutionSucceeded(execution_id(id)),
                    3 => BreakerEvent::ProbeReleased(execution_id(id)),
                    _ => BreakerEvent::CredentialRepaired,
                };
                breaker = apply_breaker_event(breaker, event);
                let probe = |breaker: Option<TrippedBreaker>| breaker.and_then(|breaker| breaker.probe);
                if probe(breaker) != probe(breaker_before) && probe(breaker).is_some() {
                    prop_assert_eq!((kind, state_before), (1, BreakerState::HalfOpen));
                    prop_assert_eq!(probe(breaker_before), None);
                }
                if breaker_before.is_some() && breaker.is_none() {
                    prop_assert_eq!((kind, probe(breaker_before)), (2, Some(execution_id(id))));
                }
                prop_assert!(breaker.is_none_or(|breaker| breaker.until <= at(latest)));
            }
            prop_assert!(breaker_state(breaker.as_ref(), at(latest)) != BreakerState::Open);
        }
    }
}
