//! End of an execution: the transitions to the outcome, its record and the clean-up.

use super::{
    ExecutionEffect as Effect, ExecutionEnd, ExecutionEvent as Event, ExecutionPhase as Phase,
};
use super::{ExecutionEffect, ExecutionEvent, ExecutionPhase};
use crate::model::code::Code;
use crate::model::execution::{AttemptId, ExecutionState, Outcome};
use crate::model::failure::Failure;

pub(super) fn apply_after_end(
    attempt_id: AttemptId,
    outcome: Outcome,
    settled: bool,
    cleaned: bool,
    event: ExecutionEvent,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    match event {
        Event::Settled if !settled => finish_if_complete(attempt_id, outcome, true, cleaned),
        Event::CleanUpCompleted { attempt_id: id } if id == attempt_id && !cleaned => {
            finish_if_complete(attempt_id, outcome, settled, true)
        }
        event => (
            Phase::Finalizing { attempt_id, outcome, settled, cleaned },
            vec![Effect::Ignore { event }],
        ),
    }
}

/// Ends an execution by a decision of the service. Its work may still live, so the clean-up starts at once.
pub(super) fn end_and_clean_up_now(
    attempt_id: AttemptId,
    from: ExecutionState,
    ending: ExecutionEnd,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    end_with_clean_up(
        attempt_id,
        from,
        ending,
        Effect::CleanUp { attempt_id, waits_for_end_record: false },
    )
}

/// Ends an execution by the report of its attempt.
pub(super) fn end_and_clean_up_after_record(
    attempt_id: AttemptId,
    from: ExecutionState,
    ending: ExecutionEnd,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    end_with_clean_up(
        attempt_id,
        from,
        ending,
        Effect::CleanUp { attempt_id, waits_for_end_record: true },
    )
}

fn end_with_clean_up(
    attempt_id: AttemptId,
    from: ExecutionState,
    ending: ExecutionEnd,
    clean_up: ExecutionEffect,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    let outcome = ending.outcome;
    let reason = ending.failure.as_ref().map_or("it answered", |failure| &failure.message);
    let mut effects: Vec<_> = transitions_to_end(from, outcome)
        .into_iter()
        .map(|(from, to)| transition_effect(attempt_id, from, to, reason))
        .collect();
    effects.push(Effect::Settle { attempt_id, ending });
    effects.push(clean_up);
    (Phase::Finalizing { attempt_id, outcome, settled: false, cleaned: false }, effects)
}

fn finish_if_complete(
    attempt_id: AttemptId,
    outcome: Outcome,
    settled: bool,
    cleaned: bool,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    if settled && cleaned {
        let transition = transition_effect(
            attempt_id,
            ExecutionState::Cleanup,
            ExecutionState::Idle,
            "nothing is left of it",
        );
        (Phase::Done { outcome: Some(outcome) }, vec![transition, Effect::Finish])
    } else {
        (Phase::Finalizing { attempt_id, outcome, settled, cleaned }, Vec::new())
    }
}

/// Returns the transitions from a state to an outcome and into the clean-up.
#[must_use]
pub fn transitions_to_end(
    from: ExecutionState,
    outcome: Outcome,
) -> Vec<(ExecutionState, ExecutionState)> {
    let to = outcome.state();
    let mut transitions = match (from, to) {
        (ExecutionState::Starting, ExecutionState::Completed) => {
            vec![(from, ExecutionState::Running), (ExecutionState::Running, to)]
        }
        (from, to) if from == to => Vec::new(),
        (from, to) => vec![(from, to)],
    };
    transitions.push((to, ExecutionState::Cleanup));
    transitions
}

pub(super) fn transition_effect(
    attempt_id: AttemptId,
    from: ExecutionState,
    to: ExecutionState,
    reason: &str,
) -> ExecutionEffect {
    Effect::RecordTransition { from, to, attempt_id, reason: reason.to_owned() }
}

pub(super) fn cancelled_end(reason: String) -> ExecutionEnd {
    ExecutionEnd {
        outcome: Outcome::Cancelled,
        failure: Some(Failure::new(Code::Cancelled, reason)),
    }
}

pub(super) fn failed_end(failure: Failure) -> ExecutionEnd {
    ExecutionEnd { outcome: Outcome::Failed, failure: Some(failure) }
}

pub(super) fn queue_timeout_end() -> ExecutionEnd {
    let message = "it waited in the queue for longer than allowed";
    failed_end(Failure::new(Code::QueueTimeout, message))
}
