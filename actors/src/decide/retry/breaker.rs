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
pub struct OpenCircuit {
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
    Failed {
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
    Succeeded(ExecutionId),
    /// An execution ended or was deferred.
    ExecutionLeft(ExecutionId),
    /// The rejected credential was repaired.
    CredentialRepaired,
    /// An operator closes the circuit, regardless of the cause.
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

/// Returns the state of the circuit at a time.
#[must_use]
pub fn state(circuit: Option<&OpenCircuit>, now: DateTime<Utc>) -> BreakerState {
    match circuit {
        None => BreakerState::Closed,
        Some(OpenCircuit { probe: Some(_), .. }) => BreakerState::Probing,
        Some(OpenCircuit { since, until, .. })
            if now < *until && now >= *since - CLOCK_TOLERANCE =>
        {
            BreakerState::Open
        }
        Some(_) => BreakerState::HalfOpen,
    }
}

/// Decides the next state of the circuit for an event.
#[must_use]
pub fn step(circuit: Option<OpenCircuit>, event: BreakerEvent) -> Option<OpenCircuit> {
    match event {
        BreakerEvent::Failed { id, cause, until, default_wait, now } => {
            let is_probe = circuit.is_some_and(|circuit| circuit.probe == Some(id));
            let failed_probes =
                circuit.map_or(0, |circuit| circuit.failed_probes + u32::from(is_probe));
            let until = until.or_else(|| add_wait(now, doubled_wait(default_wait, failed_probes)));
            let until = until.unwrap_or(DateTime::<Utc>::MAX_UTC).min(now + MAX_BLOCK_DURATION);
            Some(merge_failure(
                circuit.filter(|_| !is_probe),
                OpenCircuit { cause, since: now, until, probe: None, failed_probes },
            ))
        }
        BreakerEvent::ProbeRequested { id, now }
            if state(circuit.as_ref(), now) == BreakerState::HalfOpen =>
        {
            circuit.map(|circuit| OpenCircuit { probe: Some(id), ..circuit })
        }
        BreakerEvent::Succeeded(id) => circuit.filter(|circuit| circuit.probe != Some(id)),
        BreakerEvent::ExecutionLeft(id) => circuit.map(|circuit| OpenCircuit {
            probe: circuit.probe.filter(|probe| *probe != id),
            ..circuit
        }),
        BreakerEvent::CredentialRepaired => {
            circuit.filter(|circuit| circuit.cause != DeferralCause::CredentialRefused)
        }
        BreakerEvent::ClosedByOperator => None,
        BreakerEvent::ProbeRequested { .. } => circuit,
    }
}

/// Merges a failure into an open circuit: the later end time applies, and a running probe continues.
fn merge_failure(before: Option<OpenCircuit>, new: OpenCircuit) -> OpenCircuit {
    match before {
        None => new,
        Some(before) => OpenCircuit {
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
        BreakerEvent::Failed {
            id,
            cause: DeferralCause::QuotaExhausted,
            until,
            default_wait,
            now: at(now),
        }
    }

    fn circuit_after(events: &[BreakerEvent]) -> Option<OpenCircuit> {
        events.iter().fold(None, |circuit, event| step(circuit, *event))
    }

    fn state_after(events: &[BreakerEvent], now: i64) -> BreakerState {
        state(circuit_after(events).as_ref(), at(now))
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
            circuit_after(&[failure, probe_request, other]).unwrap().probe,
            Some(execution_id(2))
        );
        assert_eq!(
            state_after(&[failure, probe_request, BreakerEvent::Succeeded(execution_id(9))], 60),
            BreakerState::Probing
        );
        assert_eq!(
            state_after(&[failure, probe_request, BreakerEvent::Succeeded(execution_id(2))], 60),
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
                &[failure, probe_request, BreakerEvent::ExecutionLeft(execution_id(2))],
                60
            ),
            BreakerState::HalfOpen
        );
        assert_eq!(
            state_after(
                &[failure, probe_request, BreakerEvent::ExecutionLeft(execution_id(3))],
                60
            ),
            BreakerState::Probing
        );
    }

    #[test]
    fn an_unknown_pause_doubles_after_a_failed_probe() {
        let first_failure = failure_event(1, 0, None);
        assert_eq!(circuit_after(&[first_failure]).unwrap().until, at(100));
        let probe_request = BreakerEvent::ProbeRequested { id: execution_id(2), now: at(100) };
        assert_eq!(
            circuit_after(&[first_failure, probe_request, failure_event(2, 100, None)])
                .unwrap()
                .until,
            at(300)
        );
        // Executions that were already in progress bring no new information.
        assert_eq!(
            circuit_after(&[first_failure, failure_event(3, 1, None)]).unwrap().until,
            at(101)
        );
    }

    #[test]
    fn the_later_end_of_a_pause_counts_up_to_one_day() {
        assert_eq!(
            circuit_after(&[failure_event(1, 0, Some(60)), failure_event(2, 1, Some(30))])
                .unwrap()
                .until,
            at(60)
        );
        assert_eq!(circuit_after(&[failure_event(1, 0, Some(900_000))]).unwrap().until, at(86_400));
    }

    #[test]
    fn a_clock_set_back_allows_a_probe() {
        assert_eq!(state_after(&[failure_event(1, 0, Some(60))], -30), BreakerState::Open);
        assert_eq!(state_after(&[failure_event(1, 0, Some(60))], -3600), BreakerState::HalfOpen);
    }

    #[test]
    fn only_a_refused_credential_can_be_repaired() {
        let used_up = failure_event(1, 0, Some(60));
        let BreakerEvent::Failed { id, until, default_wait, now, .. } = used_up else {
            unreachable!()
        };
        let refused = BreakerEvent::Failed {
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
        let BreakerEvent::Failed { default_wait, .. } = quota_failure else { unreachable!() };
        let (id, until, now) = (execution_id(2), Some(at(20)), at(1));
        let rate_limit = BreakerEvent::Failed {
            id,
            cause: DeferralCause::RateLimited,
            until,
            default_wait,
            now,
        };
        let circuit = circuit_after(&[quota_failure, rate_limit]).unwrap();
        assert_eq!((circuit.cause, circuit.until), (DeferralCause::QuotaExhausted, at(3600)));
        assert_eq!(
            circuit_after(&[rate_limit, quota_failure]).unwrap().cause,
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

    fn event() -> impl Strategy<Value = (i64, u8, u128, i64)> {
        (0i64..50, 0u8..5, 0u128..4, 0i64..200)
    }

    proptest! {
        /// For any sequence of events, at most one execution probes, only the admitted probe closes the circuit, and
        /// the circuit never stays open past the latest reported time.
        #[test]
        fn at_most_one_probe_runs_and_no_pause_is_lost(steps in proptest::collection::vec(event(), 0..60)) {
            let (mut circuit, mut now, mut latest): (Option<OpenCircuit>, i64, i64) = (None, 0, 0);
            for (elapsed, kind, id, retry_after) in steps {
                now += elapsed;
                let state_before = state(circuit.as_ref(), at(now));
                let circuit_before = circuit;
                let event = match kind {
                    0 => {
                        latest = latest.max(now + retry_after);
                        failure_event(id, now, Some(now + retry_after))
                    }
                    1 => BreakerEvent::ProbeRequested { id: execution_id(id), now: at(now) },
                    2 => BreakerEvent::Succeeded(execution_id(id)),
                    3 => BreakerEvent::ExecutionLeft(execution_id(id)),
                    _ => BreakerEvent::CredentialRepaired,
                };
                circuit = step(circuit, event);
                let probe = |circuit: Option<OpenCircuit>| circuit.and_then(|circuit| circuit.probe);
                if probe(circuit) != probe(circuit_before) && probe(circuit).is_some() {
                    prop_assert_eq!((kind, state_before), (1, BreakerState::HalfOpen));
                    prop_assert_eq!(probe(circuit_before), None);
                }
                if circuit_before.is_some() && circuit.is_none() {
                    prop_assert_eq!((kind, probe(circuit_before)), (2, Some(execution_id(id))));
                }
                prop_assert!(circuit.is_none_or(|circuit| circuit.until <= at(latest)));
            }
            prop_assert!(state(circuit.as_ref(), at(latest)) != BreakerState::Open);
        }
    }
}
