//! How an execution ends: by which moves, and when nothing is left to do.

use super::{Deadline, Effect as Do, Phase as P, Policy};
use crate::model::code::Code;
use crate::model::execution::{Outcome, Stamp, State};
use crate::model::failure::Failure;

/// How something ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Which way.
    pub outcome: Outcome,
    /// Why; `None` only when it ends well.
    pub failure: Option<Failure>,
}

pub(super) fn rest_if(
    stamp: Stamp,
    outcome: Outcome,
    settled: bool,
    cleaned: bool,
) -> (P, Vec<Do>) {
    if settled && cleaned {
        let moved = moved(stamp, State::Cleanup, State::Idle, "nothing is left of it");
        (P::Rest { outcome: Some(outcome) }, vec![moved, Do::Rest])
    } else {
        (P::Ended { stamp, outcome, settled, cleaned }, Vec::new())
    }
}

pub(super) fn end(stamp: Stamp, from: State, ending: Ending) -> (P, Vec<Do>) {
    let outcome = ending.outcome;
    let why = ending.failure.as_ref().map_or("it answered", |failure| &failure.message);
    let mut effects: Vec<_> =
        way_out(from, outcome).into_iter().map(|(from, to)| moved(stamp, from, to, why)).collect();
    effects.push(Do::Settle { stamp, ending });
    effects.push(Do::Clean { stamp });
    (P::Ended { stamp, outcome, settled: false, cleaned: false }, effects)
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

pub(super) fn moved(stamp: Stamp, from: State, to: State, why: &str) -> Do {
    Do::Move { from, to, stamp, why: why.to_owned() }
}

pub(super) fn cancelled(why: String) -> Ending {
    Ending { outcome: Outcome::Cancelled, failure: Some(Failure::new(Code::Cancelled, why)) }
}

pub(super) fn failed(failure: Failure) -> Ending {
    Ending { outcome: Outcome::Failed, failure: Some(failure) }
}

pub(super) fn overdue(deadline: Deadline, policy: &Policy) -> Ending {
    let (code, what, limit) = match deadline {
        Deadline::Start => (Code::StartTimeout, "did not start", policy.deadlines.start),
        Deadline::Run | Deadline::Stop | Deadline::Answer => {
            (Code::Timeout, "did not finish", policy.deadlines.run)
        }
    };
    let message = format!("it {what} within {} s", limit.as_secs_f64());
    Ending { outcome: Outcome::Timeout, failure: Some(Failure::new(code, message)) }
}
