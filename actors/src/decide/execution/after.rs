//! End of an execution: the transitions to the outcome, its record and the clean-up.

use super::{Ending, ExecutionEffect as Do, ExecutionEvent as E, ExecutionPhase as P};
use super::{ExecutionEffect, ExecutionEvent, ExecutionPhase};
use crate::model::code::Code;
use crate::model::execution::{AttemptId, Outcome, State};
use crate::model::failure::Failure;

pub(super) fn ended(
    stamp: AttemptId,
    outcome: Outcome,
    settled: bool,
    cleaned: bool,
    event: ExecutionEvent,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    match event {
        E::Settled if !settled => rest_if(stamp, outcome, true, cleaned),
        E::Cleaned { at } if at == stamp && !cleaned => rest_if(stamp, outcome, settled, true),
        event => (P::Ended { stamp, outcome, settled, cleaned }, vec![Do::Ignore { event }]),
    }
}

pub(super) fn end(
    stamp: AttemptId,
    from: State,
    ending: Ending,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    let outcome = ending.outcome;
    let why = ending.failure.as_ref().map_or("it answered", |failure| &failure.message);
    let mut effects: Vec<_> =
        way_out(from, outcome).into_iter().map(|(from, to)| moved(stamp, from, to, why)).collect();
    effects.push(Do::Settle { stamp, ending });
    effects.push(Do::Clean { stamp });
    (P::Ended { stamp, outcome, settled: false, cleaned: false }, effects)
}

fn rest_if(
    stamp: AttemptId,
    outcome: Outcome,
    settled: bool,
    cleaned: bool,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    if settled && cleaned {
        let moved = moved(stamp, State::Cleanup, State::Idle, "nothing is left of it");
        (P::Rest { outcome: Some(outcome) }, vec![moved, Do::Rest])
    } else {
        (P::Ended { stamp, outcome, settled, cleaned }, Vec::new())
    }
}

/// Returns the transitions from a state to an outcome and into the clean-up.
#[must_use]
pub fn way_out(from: State, outcome: Outcome) -> Vec<(State, State)> {
    let to = outcome.state();
    let mut moves = match (from, to) {
        (State::Starting, State::Completed) => {
            vec![(from, State::Running), (State::Running, to)]
        }
        (from, to) if from == to => Vec::new(),
        (from, to) => vec![(from, to)],
    };
    moves.push((to, State::Cleanup));
    moves
}

pub(super) fn moved(stamp: AttemptId, from: State, to: State, why: &str) -> ExecutionEffect {
    Do::Move { from, to, stamp, why: why.to_owned() }
}

pub(super) fn cancelled(why: String) -> Ending {
    Ending { outcome: Outcome::Cancelled, failure: Some(Failure::new(Code::Cancelled, why)) }
}

pub(super) fn failed(failure: Failure) -> Ending {
    Ending { outcome: Outcome::Failed, failure: Some(failure) }
}

pub(super) fn queue_expired() -> Ending {
    let why = "it waited in the queue for longer than allowed";
    failed(Failure::new(Code::QueueTimeout, why))
}
