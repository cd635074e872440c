//! Phases of running work: its end, its deadlines, its cancellation, its failure and its retry.

use std::time::Duration;

use super::after::{cancelled, end, failed, moved};
use super::{
    Deadline, Ending, ExecutionEffect as Do, ExecutionEvent as E, ExecutionPhase as P,
    ExecutionPolicy, OBDURACY,
};
use super::{ExecutionEffect, ExecutionEvent, ExecutionPhase, warning};
use crate::decide::retry::{self, RetryDecision, quota};
use crate::model::code::Code;
use crate::model::execution::event::DeadlineKind;
use crate::model::execution::{AttemptId, Outcome, State};
use crate::model::failure::Failure;

pub(super) fn working(
    stamp: AttemptId,
    state: State,
    event: ExecutionEvent,
    policy: &ExecutionPolicy,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    match event {
        E::Started { at } if at == stamp && state == State::Starting => started(stamp, policy),
        E::TakenUp { at, ran } if at == stamp => taken_up(stamp, state, ran, policy),
        E::Nearing { at } if at == stamp && state == State::Running => {
            let limit = policy.deadlines.run;
            let left = limit - warning(limit);
            let message =
                format!("it will have run for {} s, and will be ended then", limit.as_secs_f64());
            (P::Running { stamp }, vec![Do::Warn { limit: DeadlineKind::Run, left, message }])
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
            attempt_failed(stamp, state, (failure, None), policy)
        }
        E::Failed { at, failure, lasts } if at == stamp => {
            attempt_failed(stamp, state, (failure, Some(lasts)), policy)
        }
        E::Overspent { at, failure } if at == stamp => stop(stamp, state, failed(failure), policy),
        E::Asked { at, interruption } if at == stamp && state == State::Running => {
            let interrupted = Do::Interrupt { stamp, interruption };
            (P::Waiting { stamp }, vec![interrupted, Do::Clean { stamp }, Do::Park])
        }
        E::Overdue { at, deadline } if at == stamp && fits(deadline, state) => {
            stop(stamp, state, overdue(deadline, policy), policy)
        }
        E::Cancel { why } => stop(stamp, state, cancelled(why), policy),
        event if state == State::Starting => (P::Starting { stamp }, vec![Do::Ignore { event }]),
        event => (P::Running { stamp }, vec![Do::Ignore { event }]),
    }
}

fn started(stamp: AttemptId, policy: &ExecutionPolicy) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    let mut effects = vec![moved(stamp, State::Starting, State::Running, "its process lives")];
    effects.extend(watch_effects(stamp, Duration::ZERO, policy));
    (P::Running { stamp }, effects)
}

/// Returns the timers for the deadlines of work that has run for `ran`.
fn watch_effects(at: AttemptId, ran: Duration, policy: &ExecutionPolicy) -> Vec<ExecutionEffect> {
    let run = policy.deadlines.run;
    let nearing = warning(run).checked_sub(ran);
    let mut effects: Vec<_> =
        nearing.map(|after| Do::Wake { after, with: E::Nearing { at } }).into_iter().collect();
    let with = E::Overdue { at, deadline: Deadline::Run };
    // A resumed process may have ended meanwhile, so it gets time to report its end.
    let least = if ran.is_zero() { Duration::ZERO } else { policy.deadlines.grace };
    effects.push(Do::Wake { after: run.saturating_sub(ran).max(least), with });
    effects.extend(policy.deadlines.idle.map(|idle| Do::Look { at, after: warning(idle) }));
    effects.extend(beat(at, policy));
    effects
}

/// Returns the timer of the next resource usage reading.
fn beat(at: AttemptId, policy: &ExecutionPolicy) -> Option<ExecutionEffect> {
    policy.heartbeat.map(|after| Do::Wake { after, with: E::BeatDue { at } })
}

/// Resumes an attempt. The time without a supervisor counts towards the run deadline, but not towards the start
/// deadline.
fn taken_up(
    stamp: AttemptId,
    state: State,
    ran: Duration,
    policy: &ExecutionPolicy,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    let mut effects = vec![Do::TakeUp { stamp }];
    if state == State::Running {
        effects.extend(watch_effects(stamp, ran, policy));
        return (P::Running { stamp }, effects);
    }
    let with = E::Overdue { at: stamp, deadline: Deadline::Start };
    effects.push(Do::Wake { after: policy.deadlines.start, with });
    (P::Starting { stamp }, effects)
}

/// Handles a silence. Output restarts the idle time, so the next check follows when the idle time could be over. One
/// check between the warning and the deadline happens in each silence.
fn silent(
    at: AttemptId,
    quiet: Duration,
    policy: &ExecutionPolicy,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
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
            vec![
                Do::Warn { limit: DeadlineKind::Idle, left, message },
                Do::Look { at, after: left },
            ]
        }
    };
    (P::Running { stamp: at }, effects)
}

/// Returns true if the deadline applies in this state: the start deadline has no meaning once the work runs.
fn fits(deadline: Deadline, state: State) -> bool {
    matches!(
        (deadline, state),
        (Deadline::Start, State::Starting) | (Deadline::Run | Deadline::Idle, State::Running)
    )
}

fn attempt_failed(
    stamp: AttemptId,
    state: State,
    (failure, lasts): (Failure, Option<Duration>),
    policy: &ExecutionPolicy,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    let &ExecutionPolicy { ref retry, ref parking, access, parks, own_retries, overloads, .. } =
        policy;
    let (number, had_input) = (stamp.attempt, state == State::Running);
    let attempt =
        retry::Attempt { retry, parking, access, number, parks, own_retries, overloads, had_input };
    let fate = retry::fate(attempt, &failure, lasts);
    let moved = moved(stamp, state, State::Failed, &failure.message);
    match fate {
        RetryDecision::Last => end(stamp, state, failed(failure)),
        RetryDecision::Again(pause) => {
            let effects = vec![Do::Note { failure }, moved, Do::Clean { stamp }];
            (P::Clearing { stamp, pause }, effects)
        }
        RetryDecision::Parked(wait, cause) => {
            let overloads = quota::overloads(overloads, &failure);
            let defer = Do::ParkFor { stamp, wait, cause, overloads };
            let effects = [Do::Note { failure }, moved, Do::Clean { stamp }, defer];
            (P::Paused { stamp }, effects.into())
        }
    }
}

fn stop(
    stamp: AttemptId,
    from: State,
    ending: Ending,
    policy: &ExecutionPolicy,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    let with = E::Overdue { at: stamp, deadline: Deadline::Stop };
    let wake = Do::Wake { after: policy.deadlines.grace + OBDURACY, with };
    (P::Stopping { stamp, from, ending }, vec![Do::Stop, wake])
}

/// Handles events of stopping work. The stop request determines the outcome, whatever the work reports.
pub(super) fn stopping(
    stamp: AttemptId,
    from: State,
    ending: Ending,
    event: ExecutionEvent,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    match event {
        E::Ended { at, verdict: Err(failure) } | E::Failed { at, failure, .. } if at == stamp => {
            end(stamp, from, with_last_words(ending, &failure))
        }
        E::Ended { at, .. } | E::Asked { at, .. } | E::Overdue { at, deadline: Deadline::Stop }
            if at == stamp =>
        {
            end(stamp, from, ending)
        }
        event => (P::Stopping { stamp, from, ending }, vec![Do::Ignore { event }]),
    }
}

/// Appends the last output of the program, which often shows what it waited for when a deadline passed.
fn with_last_words(ending: Ending, told: &Failure) -> Ending {
    let is_late = |failure: &Failure| matches!(failure.code, Code::IdleTimeout | Code::Timeout);
    let words = &told.last_words;
    let with = |failure: Failure| {
        if words.is_empty() || !is_late(&failure) {
            return failure;
        }
        let message = format!("{}; its last output: {words}", failure.message);
        Failure { message, ..failure }
    };
    Ending { failure: ending.failure.map(with), ..ending }
}

fn overdue(deadline: Deadline, policy: &ExecutionPolicy) -> Ending {
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
