//! While the work lives: it ends, is overdue, is called off, fails and perhaps is tried again.

use super::after::{cancelled, end, failed, moved};
use super::{Deadline, Effect as Do, Ending, Event as E, OBDURACY, Phase as P, Policy};
use super::{Effect, Event, Phase};
use crate::decide::retry;
use crate::model::code::Code;
use crate::model::execution::{Outcome, Stamp, State};
use crate::model::failure::Failure;

pub(super) fn working(
    stamp: Stamp,
    state: State,
    event: Event,
    policy: &Policy,
) -> (Phase, Vec<Effect>) {
    match event {
        E::Started { at } if at == stamp && state == State::Starting => {
            let with = E::Overdue { at, deadline: Deadline::Run };
            let moved = moved(stamp, state, State::Running, "its process lives");
            (P::Running { stamp }, vec![moved, Do::Wake { after: policy.deadlines.run, with }])
        }
        E::Ended { at, verdict: Ok(()) } if at == stamp => {
            end(stamp, state, Ending { outcome: Outcome::Completed, failure: None })
        }
        E::Ended { at, verdict: Err(failure) } if at == stamp => {
            attempt_failed(stamp, state, failure, policy)
        }
        E::Asked { at } if at == stamp && state == State::Running => {
            let moved = moved(stamp, state, State::Waiting, "it asked for input");
            (P::Waiting { stamp }, vec![moved, Do::Clean { stamp }, Do::Park])
        }
        E::Overdue { at, deadline } if at == stamp && fits(deadline, state) => {
            stop(stamp, state, overdue(deadline, policy), policy)
        }
        E::Cancel { why } => stop(stamp, state, cancelled(why), policy),
        event if state == State::Starting => (P::Starting { stamp }, vec![Do::Ignore { event }]),
        event => (P::Running { stamp }, vec![Do::Ignore { event }]),
    }
}

/// The start deadline means nothing once the work runs.
fn fits(deadline: Deadline, state: State) -> bool {
    matches!(
        (deadline, state),
        (Deadline::Start, State::Starting) | (Deadline::Run, State::Running)
    )
}

fn attempt_failed(
    stamp: Stamp,
    state: State,
    failure: Failure,
    policy: &Policy,
) -> (Phase, Vec<Effect>) {
    let had_input = state == State::Running;
    match retry::pause(&policy.retry, policy.access, stamp.attempt, had_input, &failure) {
        None => end(stamp, state, failed(failure)),
        Some(pause) => {
            let moved = moved(stamp, state, State::Failed, &failure.message);
            let effects = vec![Do::Note { failure }, moved, Do::Clean { stamp }];
            (P::Clearing { stamp, pause }, effects)
        }
    }
}

fn stop(stamp: Stamp, from: State, ending: Ending, policy: &Policy) -> (Phase, Vec<Effect>) {
    let with = E::Overdue { at: stamp, deadline: Deadline::Stop };
    let wake = Do::Wake { after: policy.deadlines.grace + OBDURACY, with };
    (P::Stopping { stamp, from, ending }, vec![Do::Stop, wake])
}

/// Our own order decides how it ended, never what the dying work says.
pub(super) fn stopping(
    stamp: Stamp,
    from: State,
    ending: Ending,
    event: Event,
) -> (Phase, Vec<Effect>) {
    match event {
        E::Ended { at, .. } | E::Asked { at } | E::Overdue { at, deadline: Deadline::Stop }
            if at == stamp =>
        {
            end(stamp, from, ending)
        }
        event => (P::Stopping { stamp, from, ending }, vec![Do::Ignore { event }]),
    }
}

fn overdue(deadline: Deadline, policy: &Policy) -> Ending {
    let (code, what, limit) = match deadline {
        Deadline::Start => (Code::StartTimeout, "did not start", policy.deadlines.start),
        Deadline::Run | Deadline::Stop | Deadline::Answer => {
            (Code::Timeout, "did not finish", policy.deadlines.run)
        }
    };
    let message = format!("it {what} within {} s", limit.as_secs_f64());
    Ending { outcome: Outcome::Timeout, failure: Some(Failure::new(code, message)) }
}
