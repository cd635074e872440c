//! Phase of an execution, and the settings by which it changes.

use std::mem;

use chrono::{DateTime, Utc};

use crate::decide::execution::{
    ExecutionEffect, ExecutionEvent, ExecutionPhase, ExecutionPolicy, apply_event,
};
use crate::model::execution::{AttemptId, Outcome};
use crate::model::failure::Failure;

/// State machine of one attempt with its present phase.
pub(super) struct PhaseMachine {
    phase: ExecutionPhase,
    policy: ExecutionPolicy,
}

impl PhaseMachine {
    /// Creates the machine in the phase of a starting point.
    pub(super) const fn new(phase: ExecutionPhase, policy: ExecutionPolicy) -> Self {
        Self { phase, policy }
    }

    /// Applies an event. Returns the effects that the actor must carry out.
    pub(super) fn apply(&mut self, event: ExecutionEvent) -> Vec<ExecutionEffect> {
        // `step` takes the phase by value, so that it cannot leave a phase half changed.
        let phase = mem::replace(&mut self.phase, ExecutionPhase::Idle);
        let (phase, effects) = apply_event(phase, event, &self.policy);
        self.phase = phase;
        effects
    }

    /// Returns true if the attempt has failed and the decision about it is pending.
    pub(super) const fn awaits_retry_decision(&self) -> bool {
        matches!(self.phase, ExecutionPhase::AwaitingRetryDecision { .. })
    }

    /// Returns true if this actor has nothing left to do: the execution waits without an actor, or has ended.
    pub(super) const fn can_actor_stop(&self) -> bool {
        matches!(
            self.phase,
            ExecutionPhase::Waiting { .. }
                | ExecutionPhase::Paused { .. }
                | ExecutionPhase::Suspended { .. }
                | ExecutionPhase::Done { .. }
        )
    }

    /// Returns true if the work continues after the next start of the service.
    pub(super) const fn is_suspended(&self) -> bool {
        matches!(self.phase, ExecutionPhase::Suspended { .. })
    }

    /// Returns true if the result of the work counts: after a stop request it is unreliable.
    pub(super) const fn is_at_work(&self) -> bool {
        matches!(self.phase, ExecutionPhase::Starting { .. } | ExecutionPhase::Running { .. })
    }

    /// Returns the outcome of an execution that has ended.
    pub(super) const fn outcome(&self) -> Option<Outcome> {
        match self.phase {
            ExecutionPhase::Finalizing { outcome, .. } => Some(outcome),
            _ => None,
        }
    }
}

/// Returns the event for the end of an attempt, with the duration of its failure if known.
pub(super) fn end_event(
    attempt_id: AttemptId,
    result: Result<(), Failure>,
    now: DateTime<Utc>,
) -> ExecutionEvent {
    match result {
        Err(failure) => match failure.until {
            Some(until) => {
                // A decision has no clock, so the time becomes a duration here; a time in the past means no wait.
                let retry_after = (until - now).to_std().unwrap_or_default();
                ExecutionEvent::FailedWithRetryAfter { attempt_id, failure, retry_after }
            }
            None => ExecutionEvent::Ended { attempt_id, result: Err(failure) },
        },
        Ok(()) => ExecutionEvent::Ended { attempt_id, result: Ok(()) },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chrono::TimeDelta;

    use super::*;
    use crate::model::code::Code;

    #[test]
    fn a_failure_with_an_end_is_retried_after_it() {
        let now = DateTime::UNIX_EPOCH;
        let failed = |until: Option<TimeDelta>| {
            let failure = Failure::new(Code::AgentUnavailable, "no answer");
            let failure = match until {
                Some(after) => failure.with_until(now + after),
                None => failure,
            };
            end_event(AttemptId::FIRST, Err(failure), now)
        };
        for (after, expected) in [(5, 5), (0, 0), (-5, 0)] {
            let event = failed(Some(TimeDelta::seconds(after)));
            let ExecutionEvent::FailedWithRetryAfter { retry_after, .. } = event else {
                panic!("{event:?}")
            };
            assert_eq!(retry_after, Duration::from_secs(expected), "{after} s from now");
        }
        assert!(matches!(failed(None), ExecutionEvent::Ended { result: Err(_), .. }));
    }
}
