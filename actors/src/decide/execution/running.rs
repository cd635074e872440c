//! Phases of running work: its end, its deadlines, its cancellation, its failure and its retry.

use std::time::Duration;

use super::settlement::{cancelled_end, end_execution, failed_end, record_transition};
use super::{
    DRIVER_STOP_TIMEOUT, Deadline, ExecutionEffect as Do, ExecutionEnd, ExecutionEvent as E,
    ExecutionPhase as P, ExecutionPolicy,
};
use super::{ExecutionEffect, ExecutionEvent, ExecutionPhase, warning_time};
use crate::decide::retry::{self, RetryDecision, quota};
use crate::model::code::Code;
use crate::model::execution::event::DeadlineKind;
use crate::model::execution::{AttemptId, Outcome, State};
use crate::model::failure::Failure;

pub(super) fn step_active(
    attempt_id: AttemptId,
    state: State,
    event: ExecutionEvent,
    policy: &ExecutionPolicy,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    match event {
        E::Started { at } if at == attempt_id && state == State::Starting => {
            start_running(attempt_id, policy)
        }
        E::Resumed { at, run_time } if at == attempt_id => {
            resume_work(attempt_id, state, run_time, policy)
        }
        E::RunDeadlineNear { at } if at == attempt_id && state == State::Running => {
            let limit = policy.deadlines.run;
            let left = limit - warning_time(limit);
            let message =
                format!("it will have run for {} s, and will be ended then", limit.as_secs_f64());
            (P::Running { attempt_id }, vec![Do::Warn { limit: DeadlineKind::Run, left, message }])
        }
        E::Silent { at, quiet } if at == attempt_id && state == State::Running => {
            handle_silence(attempt_id, quiet, policy)
        }
        E::HeartbeatDue { at } if at == attempt_id && state == State::Running => {
            let effects = [Do::ReadUsage { at }].into_iter().chain(heartbeat_timer(at, policy));
            (P::Running { attempt_id }, effects.collect())
        }
        E::Ended { at, result: Ok(()) } if at == attempt_id => end_execution(
            attempt_id,
            state,
            ExecutionEnd { outcome: Outcome::Completed, failure: None },
        ),
        E::Ended { at, result: Err(failure) } if at == attempt_id => {
            attempt_failed(attempt_id, state, (failure, None), policy)
        }
        E::Failed { at, failure, retry_after } if at == attempt_id => {
            attempt_failed(attempt_id, state, (failure, Some(retry_after)), policy)
        }
        E::LimitExceeded { at, failure } if at == attempt_id => {
            stop_work(attempt_id, state, failed_end(failure), policy)
        }
        E::NeedsInput { at, interruption } if at == attempt_id && state == State::Running => {
            let interrupted = Do::Interrupt { attempt_id, interruption };
            (P::Waiting { attempt_id }, vec![interrupted, Do::Clean { attempt_id }, Do::Suspend])
        }
        E::DeadlinePassed { at, deadline } if at == attempt_id && applies_in(deadline, state) => {
            stop_work(attempt_id, state, timeout_end(deadline, policy), policy)
        }
        E::Cancel { reason } => stop_work(attempt_id, state, cancelled_end(reason), policy),
        event if state == State::Starting => {
            (P::Starting { attempt_id }, vec![Do::Ignore { event }])
        }
        event => (P::Running { attempt_id }, vec![Do::Ignore { event }]),
    }
}

fn start_running(
    attempt_id: AttemptId,
    policy: &ExecutionPolicy,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    let mut effects =
        vec![record_transition(attempt_id, State::Starting, State::Running, "its process lives")];
    effects.extend(watch_effects(attempt_id, Duration::ZERO, policy));
    (P::Running { attempt_id }, effects)
}

/// Returns the timers for the deadlines of work that has run for `run_time`.
fn watch_effects(
    at: AttemptId,
    run_time: Duration,
    policy: &ExecutionPolicy,
) -> Vec<ExecutionEffect> {
    let run = policy.deadlines.run;
    let warning_delay = warning_time(run).checked_sub(run_time);
    let mut effects: Vec<_> = warning_delay
        .map(|after| Do::SendLater { after, with: E::RunDeadlineNear { at } })
        .into_iter()
        .collect();
    let with = E::DeadlinePassed { at, deadline: Deadline::Run };
    // A resumed process may have ended meanwhile, so it gets time to report its end.
    let min_delay = if run_time.is_zero() { Duration::ZERO } else { policy.deadlines.grace };
    effects.push(Do::SendLater { after: run.saturating_sub(run_time).max(min_delay), with });
    effects.extend(
        policy.deadlines.idle.map(|idle| Do::CheckSilence { at, after: warning_time(idle) }),
    );
    effects.extend(heartbeat_timer(at, policy));
    effects
}

/// Returns the timer of the next resource usage reading.
fn heartbeat_timer(at: AttemptId, policy: &ExecutionPolicy) -> Option<ExecutionEffect> {
    policy.heartbeat.map(|after| Do::SendLater { after, with: E::HeartbeatDue { at } })
}

/// Resumes an attempt. The time without a supervisor counts towards the run deadline, but not towards the start
/// deadline.
fn resume_work(
    attempt_id: AttemptId,
    state: State,
    run_time: Duration,
    policy: &ExecutionPolicy,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    let mut effects = vec![Do::Resume { attempt_id }];
    if state == State::Running {
        effects.extend(watch_effects(attempt_id, run_time, policy));
        return (P::Running { attempt_id }, effects);
    }
    let with = E::DeadlinePassed { at: attempt_id, deadline: Deadline::Start };
    effects.push(Do::SendLater { after: policy.deadlines.start, with });
    (P::Starting { attempt_id }, effects)
}

/// Handles a silence. Output restarts the idle time, so the next check follows when the idle time could be over. One
/// check between the warning and the deadline happens in each silence.
fn handle_silence(
    at: AttemptId,
    quiet: Duration,
    policy: &ExecutionPolicy,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    let Some(idle) = policy.deadlines.idle else {
        return (P::Running { attempt_id: at }, Vec::new());
    };
    let left = idle.saturating_sub(quiet);
    if left.is_zero() {
        return stop_work(at, State::Running, timeout_end(Deadline::Idle, policy), policy);
    }
    let effects = match warning_time(idle).checked_sub(quiet).filter(|after| !after.is_zero()) {
        Some(after) => vec![Do::CheckSilence { at, after }],
        None => {
            let limit = idle.as_secs_f64();
            let message = format!("it is silent, and will be ended once it has been for {limit} s");
            vec![
                Do::Warn { limit: DeadlineKind::Idle, left, message },
                Do::CheckSilence { at, after: left },
            ]
        }
    };
    (P::Running { attempt_id: at }, effects)
}

/// Returns true if the deadline applies in this state: the start deadline has no meaning once the work runs.
fn applies_in(deadline: Deadline, state: State) -> bool {
    matches!(
        (deadline, state),
        (Deadline::Start, State::Starting) | (Deadline::Run | Deadline::Idle, State::Running)
    )
}

fn attempt_failed(
    attempt_id: AttemptId,
    state: State,
    (failure, retry_after): (Failure, Option<Duration>),
    policy: &ExecutionPolicy,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    let &ExecutionPolicy {
        ref retry, ref deferral, access, deferrals, own_retries, overloads, ..
    } = policy;
    let (number, had_input) = (attempt_id.attempt, state == State::Running);
    let attempt = retry::FailedAttempt {
        retry,
        deferral,
        access,
        number,
        deferrals,
        own_retries,
        overloads,
        had_input,
    };
    let decision = retry::retry_decision(attempt, &failure, retry_after);
    let moved = record_transition(attempt_id, state, State::Failed, &failure.message);
    match decision {
        RetryDecision::GiveUp => end_execution(attempt_id, state, failed_end(failure)),
        RetryDecision::Retry(pause) => {
            let effects =
                vec![Do::RecordFailedAttempt { failure }, moved, Do::Clean { attempt_id }];
            (P::CleaningUp { attempt_id, pause }, effects)
        }
        RetryDecision::Defer(wait, cause) => {
            let overloads = quota::count_overloads(overloads, &failure);
            let defer = Do::Defer { attempt_id, wait, cause, overloads };
            let effects =
                [Do::RecordFailedAttempt { failure }, moved, Do::Clean { attempt_id }, defer];
            (P::Paused { attempt_id }, effects.into())
        }
    }
}

fn stop_work(
    attempt_id: AttemptId,
    from: State,
    ending: ExecutionEnd,
    policy: &ExecutionPolicy,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    let with = E::DeadlinePassed { at: attempt_id, deadline: Deadline::Stop };
    let wake = Do::SendLater { after: policy.deadlines.grace + DRIVER_STOP_TIMEOUT, with };
    (P::Stopping { attempt_id, from, ending }, vec![Do::Stop, wake])
}

/// Handles events of stopping work. The stop request determines the outcome, whatever the work reports.
pub(super) fn step_stopping(
    attempt_id: AttemptId,
    from: State,
    ending: ExecutionEnd,
    event: ExecutionEvent,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    match event {
        E::Ended { at, result: Err(failure) } | E::Failed { at, failure, .. }
            if at == attempt_id =>
        {
            end_execution(attempt_id, from, with_last_output(ending, &failure))
        }
        E::Ended { at, .. }
        | E::NeedsInput { at, .. }
        | E::DeadlinePassed { at, deadline: Deadline::Stop }
            if at == attempt_id =>
        {
            end_execution(attempt_id, from, ending)
        }
        event => (P::Stopping { attempt_id, from, ending }, vec![Do::Ignore { event }]),
    }
}

/// Appends the last output of the program, which often shows what it waited for when a deadline passed.
fn with_last_output(ending: ExecutionEnd, reported: &Failure) -> ExecutionEnd {
    let is_late = |failure: &Failure| matches!(failure.code, Code::IdleTimeout | Code::Timeout);
    let words = &reported.last_words;
    let with = |failure: Failure| {
        if words.is_empty() || !is_late(&failure) {
            return failure;
        }
        let message = format!("{}; its last output: {words}", failure.message);
        Failure { message, ..failure }
    };
    ExecutionEnd { failure: ending.failure.map(with), ..ending }
}

fn timeout_end(deadline: Deadline, policy: &ExecutionPolicy) -> ExecutionEnd {
    let (code, description, limit) = match deadline {
        Deadline::Start => (Code::StartTimeout, "did not start", policy.deadlines.start),
        Deadline::Idle => {
            let limit = policy.deadlines.idle.unwrap_or_default();
            (Code::IdleTimeout, "wrote nothing", limit)
        }
        Deadline::Run | Deadline::Stop | Deadline::Answer => {
            (Code::Timeout, "did not finish", policy.deadlines.run)
        }
    };
    let message = format!("it {description} within {} s", limit.as_secs_f64());
    ExecutionEnd { outcome: Outcome::Timeout, failure: Some(Failure::new(code, message)) }
}
