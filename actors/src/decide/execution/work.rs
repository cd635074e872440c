//! While the work lives: it ends, is silent or overdue, is called off, fails and perhaps is tried
//! again.

use std::time::Duration;

use super::after::{cancelled, end, failed, moved};
use super::{Deadline, Effect as Do, Ending, Event as E, OBDURACY, Phase as P, Policy};
use super::{Effect, Event, Phase, warning};
use crate::decide::retry;
use crate::model::code::Code;
use crate::model::event::Limit;
use crate::model::execution::{Outcome, Stamp, State};
use crate::model::failure::Failure;

pub(super) fn working(
    stamp: Stamp,
    state: State,
    event: Event,
    policy: &Policy,
) -> (Phase, Vec<Effect>) {
    match event {
        E::Started { at } if at == stamp && state == State::Starting => started(stamp, policy),
        E::TakenUp { at, ran } if at == stamp => taken_up(stamp, state, ran, policy),
        E::Nearing { at } if at == stamp && state == State::Running => {
            let limit = policy.deadlines.run;
            let left = limit - warning(limit);
            let message =
                format!("it will have run for {} s, and will be ended then", limit.as_secs_f64());
            (P::Running { stamp }, vec![Do::Warn { limit: Limit::Run, left, message }])
        }
        E::Quiet { at, quiet } if at == stamp && state == State::Running => {
            silent(stamp, quiet, policy)
        }
        E::BeatDue { at } if at == stamp && state == State::Running => {
            let effects = [Do::Measure { at }].into_iter().chain(beat(at, policy));
            (P::Running { stamp }, effects.collect())
        }
        E::Ended { at, verdict: Ok(()) } if at == stamp => {
            end(stamp, state, Ending { outcome: Outcome::Completed, failure: None })
        }
        E::Ended { at, verdict: Err(failure) } if at == stamp => {
            attempt_failed((stamp, state), failure, Duration::ZERO, policy)
        }
        E::FailedFor { at, failure, left } if at == stamp => {
            attempt_failed((stamp, state), failure, left, policy)
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

fn started(stamp: Stamp, policy: &Policy) -> (Phase, Vec<Effect>) {
    let mut effects = vec![moved(stamp, State::Starting, State::Running, "its process lives")];
    effects.extend(minded(stamp, Duration::ZERO, policy));
    (P::Running { stamp }, effects)
}

/// What minds the deadlines of work that has run for so long.
fn minded(at: Stamp, ran: Duration, policy: &Policy) -> Vec<Effect> {
    let run = policy.deadlines.run;
    let nearing = warning(run).checked_sub(ran);
    let mut effects: Vec<_> =
        nearing.map(|after| Do::Wake { after, with: E::Nearing { at } }).into_iter().collect();
    let with = E::Overdue { at, deadline: Deadline::Run };
    // What was taken up may have ended meanwhile, and has time to tell so.
    let least = if ran.is_zero() { Duration::ZERO } else { policy.deadlines.grace };
    effects.push(Do::Wake { after: run.saturating_sub(ran).max(least), with });
    effects.extend(policy.deadlines.idle.map(|idle| Do::Look { at, after: warning(idle) }));
    effects.extend(beat(at, policy));
    effects
}

/// The next look at what the work takes.
fn beat(at: Stamp, policy: &Policy) -> Option<Effect> {
    policy.heartbeat.map(|after| Do::Wake { after, with: E::BeatDue { at } })
}

/// The time in which no supervisor was there counts too, but for the start: that is over.
fn taken_up(stamp: Stamp, state: State, ran: Duration, policy: &Policy) -> (Phase, Vec<Effect>) {
    let mut effects = vec![Do::TakeUp { stamp }];
    if state == State::Running {
        effects.extend(minded(stamp, ran, policy));
        return (P::Running { stamp }, effects);
    }
    let with = E::Overdue { at: stamp, deadline: Deadline::Start };
    effects.push(Do::Wake { after: policy.deadlines.start, with });
    (P::Starting { stamp }, effects)
}

/// A sign of life begins its time anew, so it is looked at again when that may be over. A look
/// between the warning and the end comes once in each silence.
fn silent(at: Stamp, quiet: Duration, policy: &Policy) -> (Phase, Vec<Effect>) {
    let Some(idle) = policy.deadlines.idle else {
        return (P::Running { stamp: at }, Vec::new());
    };
    let left = idle.saturating_sub(quiet);
    if left.is_zero() {
        return stop(at, State::Running, overdue(Deadline::Idle, policy), policy);
    }
    let effects = match warning(idle).checked_sub(quiet).filter(|after| !after.is_zero()) {
        Some(after) => vec![Do::Look { at, after }],
        None => {
            let limit = idle.as_secs_f64();
            let message = format!("it is silent, and will be ended once it has been for {limit} s");
            vec![Do::Warn { limit: Limit::Idle, left, message }, Do::Look { at, after: left }]
        }
    };
    (P::Running { stamp: at }, effects)
}

/// The start deadline means nothing once the work runs.
fn fits(deadline: Deadline, state: State) -> bool {
    matches!(
        (deadline, state),
        (Deadline::Start, State::Starting) | (Deadline::Run | Deadline::Idle, State::Running)
    )
}

fn attempt_failed(
    (stamp, state): (Stamp, State),
    failure: Failure,
    left: Duration,
    policy: &Policy,
) -> (Phase, Vec<Effect>) {
    let had_input = state == State::Running;
    let Policy { retry, access, .. } = policy;
    match retry::pause_for(retry, *access, stamp.attempt, had_input, (&failure, left)) {
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
        E::Ended { at, .. }
        | E::FailedFor { at, .. }
        | E::Asked { at }
        | E::Overdue { at, deadline: Deadline::Stop }
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
        Deadline::Idle => {
            let limit = policy.deadlines.idle.unwrap_or_default();
            (Code::IdleTimeout, "wrote nothing", limit)
        }
        Deadline::Run | Deadline::Stop | Deadline::Answer => {
            (Code::Timeout, "did not finish", policy.deadlines.run)
        }
    };
    let message = format!("it {what} within {} s", limit.as_secs_f64());
    Ending { outcome: Outcome::Timeout, failure: Some(Failure::new(code, message)) }
}
