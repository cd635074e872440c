//! The end: the moves that lead there, the record of it, the clean-up, the rest.

use super::{Effect as Do, Ending, Event as E, Phase as P};
use super::{Effect, Event, Phase};
use crate::model::code::Code;
use crate::model::execution::{Outcome, Stamp, State};
use crate::model::failure::Failure;

pub(super) fn ended(
    stamp: Stamp,
    outcome: Outcome,
    settled: bool,
    cleaned: bool,
    event: Event,
) -> (Phase, Vec<Effect>) {
    match event {
        E::Settled if !settled => rest_if(stamp, outcome, true, cleaned),
        E::Cleaned { at } if at == stamp && !cleaned => rest_if(stamp, outcome, settled, true),
        event => (P::Ended { stamp, outcome, settled, cleaned }, vec![Do::Ignore { event }]),
    }
}

pub(super) fn end(stamp: Stamp, from: State, ending: Ending) -> (Phase, Vec<Effect>) {
    let outcome = ending.outcome;
    let why = ending.failure.as_ref().map_or("it answered", |failure| &failure.message);
    let mut effects: Vec<_> =
        way_out(from, outcome).into_iter().map(|(from, to)| moved(stamp, from, to, why)).collect();
    effects.push(Do::Settle { stamp, ending });
    effects.push(Do::Clean { stamp });
    (P::Ended { stamp, outcome, settled: false, cleaned: false }, effects)
}

fn rest_if(stamp: Stamp, outcome: Outcome, settled: bool, cleaned: bool) -> (Phase, Vec<Effect>) {
    if settled && cleaned {
        let moved = moved(stamp, State::Cleanup, State::Idle, "nothing is left of it");
        (P::Rest { outcome: Some(outcome) }, vec![moved, Do::Rest])
    } else {
        (P::Ended { stamp, outcome, settled, cleaned }, Vec::new())
    }
}

/// The moves from a state to an outcome and into the clean-up.
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

pub(super) fn moved(stamp: Stamp, from: State, to: State, why: &str) -> Effect {
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
