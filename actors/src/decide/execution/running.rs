//! Phases of running work: its end, its deadlines, its cancellation and its failure.

use std::time::Duration;

use super::settlement::{
    cancelled_end, end_and_clean_up_after_record, end_and_clean_up_now, failed_end,
    transition_effect,
};
use super::{
    DRIVER_STOP_TIMEOUT, ExecutionDeadline, ExecutionEffect as Effect, ExecutionEnd,
    ExecutionEvent as Event, ExecutionPhase as Phase, ExecutionPolicy, NextAttempt,
};
use super::{ExecutionEffect, ExecutionEvent, ExecutionPhase, delay_until_warning};
use crate::model::code::Code;
use crate::model::execution::event::DeadlineKind;
use crate::model::execution::{AttemptId, ExecutionState, Outcome};
use crate::model::failure::Failure;

pub(super) fn apply_while_active(
    attempt_id: AttemptId,
    state: ExecutionState,
    event: ExecutionEvent,
    policy: &ExecutionPolicy,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    let is_starting = state == ExecutionState::Starting;
    let is_running = state == ExecutionState::Running;
    match event {
        Event::Started { attempt_id: id } if id == attempt_id && is_starting => {
            start_running(attempt_id, policy)
        }
        Event::TakenOver { attempt_id: id, run_time } if id == attempt_id => {
            resume_work(attempt_id, state, run_time, policy)
        }
        Event::RunDeadlineNear { attempt_id: id } if id == attempt_id && is_running => {
            warn_of_deadline(attempt_id, policy)
        }
        Event::SilenceMeasured { attempt_id: id, silence } if id == attempt_id && is_running => {
            handle_silence(attempt_id, silence, policy)
        }
        Event::UsageReadingDue { attempt_id: id } if id == attempt_id && is_running => {
            let effects = [Effect::ReadUsage { attempt_id: id }]
                .into_iter()
                .chain(usage_reading_timer(id, policy));
            (Phase::Running { attempt_id }, effects.collect())
        }
        Event::Ended { attempt_id: id, result: Ok(()) } if id == attempt_id => {
            end_and_clean_up_after_record(
                attempt_id,
                state,
                ExecutionEnd { outcome: Outcome::Completed, failure: None },
            )
        }
        Event::Ended { attempt_id: id, result: Err(failure) } if id == attempt_id => {
            report_failure(attempt_id, state, (failure, None))
        }
        Event::FailedWithRetryAfter { attempt_id: id, failure, retry_after }
            if id == attempt_id =>
        {
            report_failure(attempt_id, state, (failure, Some(retry_after)))
        }
        Event::LimitExceeded { attempt_id: id, failure } if id == attempt_id => {
            stop_work(attempt_id, state, failed_end(failure), policy)
        }
        Event::NeedsInput { attempt_id: id, required_input } if id == attempt_id && is_running => {
            let record_effect = Effect::RecordInputRequest { attempt_id, required_input };
            let clean_up_effect = clean_up_effect_after_record(attempt_id);
            let effects = vec![record_effect, clean_up_effect, Effect::StopActorAfterCleanUp];
            (Phase::Waiting { attempt_id }, effects)
        }
        Event::Suspended { attempt_id: id } if id == attempt_id => {
            let clean_up_effect = Effect::CleanUp { attempt_id, waits_for_end_record: false };
            let effects = vec![clean_up_effect, Effect::StopActorAfterCleanUp];
            (Phase::Suspended { attempt_id }, effects)
        }
        Event::DeadlinePassed { attempt_id: id, deadline }
            if id == attempt_id && applies_in(deadline, state) =>
        {
            stop_work(attempt_id, state, timeout_end(deadline, policy), policy)
        }
        Event::CancelRequested { reason } => {
            stop_work(attempt_id, state, cancelled_end(reason), policy)
        }
        event => (active_phase(attempt_id, state), vec![Effect::Ignore { event }]),
    }
}

const fn clean_up_effect_after_record(attempt_id: AttemptId) -> ExecutionEffect {
    Effect::CleanUp { attempt_id, waits_for_end_record: true }
}

/// Returns the phase of work in this state.
fn active_phase(attempt_id: AttemptId, state: ExecutionState) -> ExecutionPhase {
    match state {
        ExecutionState::Starting => Phase::Starting { attempt_id },
        _ => Phase::Running { attempt_id },
    }
}

/// Warns that the run deadline is near. The work continues.
fn warn_of_deadline(
    attempt_id: AttemptId,
    policy: &ExecutionPolicy,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    let limit = policy.timeouts.run;
    let remaining = limit - delay_until_warning(limit);
    let message = format!("it will have run for {} s, and will be ended then", limit.as_secs_f64());
    (
        Phase::Running { attempt_id },
        vec![Effect::RecordDeadlineWarning {
            deadline_kind: DeadlineKind::Run,
            remaining,
            message,
        }],
    )
}

fn start_running(
    attempt_id: AttemptId,
    policy: &ExecutionPolicy,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    let mut effects = vec![transition_effect(
        attempt_id,
        ExecutionState::Starting,
        ExecutionState::Running,
        "its process lives",
    )];
    effects.extend(deadline_timers(attempt_id, Duration::ZERO, policy));
    (Phase::Running { attempt_id }, effects)
}

/// Returns the timers for the deadlines of work that has run for `run_time`.
fn deadline_timers(
    attempt_id: AttemptId,
    run_time: Duration,
    policy: &ExecutionPolicy,
) -> Vec<ExecutionEffect> {
    let run_limit = policy.timeouts.run;
    let warning_delay = delay_until_warning(run_limit).checked_sub(run_time);
    let mut effects: Vec<_> = warning_delay
        .map(|after| Effect::SendLater { after, event: Event::RunDeadlineNear { attempt_id } })
        .into_iter()
        .collect();
    let deadline_event = Event::DeadlinePassed { attempt_id, deadline: ExecutionDeadline::Run };
    // A resumed process may have ended meanwhile, so it gets time to report its end.
    let min_delay = if run_time.is_zero() { Duration::ZERO } else { policy.timeouts.grace };
    effects.push(Effect::SendLater {
        after: run_limit.saturating_sub(run_time).max(min_delay),
        event: deadline_event,
    });
    effects.extend(
        policy
            .timeouts
            .idle
            .map(|idle| Effect::CheckSilence { attempt_id, after: delay_until_warning(idle) }),
    );
    effects.extend(usage_reading_timer(attempt_id, policy));
    effects
}

/// Returns the timer of the next resource usage reading.
fn usage_reading_timer(attempt_id: AttemptId, policy: &ExecutionPolicy) -> Option<ExecutionEffect> {
    policy
        .heartbeat_interval
        .map(|after| Effect::SendLater { after, event: Event::UsageReadingDue { attempt_id } })
}

/// Resumes an attempt. The time without a supervisor counts towards the run deadline, but not towards the start
/// deadline.
fn resume_work(
    attempt_id: AttemptId,
    state: ExecutionState,
    run_time: Duration,
    policy: &ExecutionPolicy,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    let mut effects = vec![Effect::ResumeAttempt { attempt_id }];
    if state == ExecutionState::Running {
        effects.extend(deadline_timers(attempt_id, run_time, policy));
        return (Phase::Running { attempt_id }, effects);
    }
    let deadline_event = Event::DeadlinePassed { attempt_id, deadline: ExecutionDeadline::Start };
    effects.push(Effect::SendLater { after: policy.timeouts.start, event: deadline_event });
    (Phase::Starting { attempt_id }, effects)
}

/// Handles a silence. Output restarts the idle time, so the next check follows when the idle time could be over. One
/// check between the warning and the deadline happens in each silence.
fn handle_silence(
    attempt_id: AttemptId,
    silence: Duration,
    policy: &ExecutionPolicy,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    let Some(idle) = policy.timeouts.idle else {
        return (Phase::Running { attempt_id }, Vec::new());
    };
    let remaining = idle.saturating_sub(silence);
    if remaining.is_zero() {
        return stop_work(
            attempt_id,
            ExecutionState::Running,
            timeout_end(ExecutionDeadline::Idle, policy),
            policy,
        );
    }
    let effects =
        match delay_until_warning(idle).checked_sub(silence).filter(|after| !after.is_zero()) {
            Some(after) => vec![Effect::CheckSilence { attempt_id, after }],
            None => {
                let limit = idle.as_secs_f64();
                let message =
                    format!("it is silent, and will be ended once it has been for {limit} s");
                vec![
                    Effect::RecordDeadlineWarning {
                        deadline_kind: DeadlineKind::Idle,
                        remaining,
                        message,
                    },
                    Effect::CheckSilence { attempt_id, after: remaining },
                ]
            }
        };
    (Phase::Running { attempt_id }, effects)
}

/// Returns true if the deadline applies in this state: the start deadline has no meaning once the work runs.
fn applies_in(deadline: ExecutionDeadline, state: ExecutionState) -> bool {
    matches!(
        (deadline, state),
        (ExecutionDeadline::Start, ExecutionState::Starting)
            | (ExecutionDeadline::Run | ExecutionDeadline::Idle, ExecutionState::Running)
    )
}

/// Reports a failed attempt to the agent's actor, which decides what follows.
fn report_failure(
    attempt_id: AttemptId,
    from: ExecutionState,
    (failure, retry_after): (Failure, Option<Duration>),
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    let may_have_received_input = from == ExecutionState::Running;
    let report = Effect::ReportFailure {
        attempt_id,
        failure: failure.clone(),
        retry_after,
        may_have_received_input,
    };
    (Phase::AwaitingRetryDecision { attempt_id, from, failure }, vec![report])
}

/// Handles events of a failed attempt. A cancellation determines the outcome until the decision is known.
pub(super) fn apply_while_undecided(
    attempt_id: AttemptId,
    from: ExecutionState,
    failure: Failure,
    event: ExecutionEvent,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    match event {
        Event::NextAttemptDecided { attempt_id: id, next_attempt } if id == attempt_id => {
            let retry_or_deferral_effect = match next_attempt {
                // An internal error leaves no result, and parts of the work may still live.
                NextAttempt::None if failure.code == Code::Internal => {
                    return end_and_clean_up_now(attempt_id, from, failed_end(failure));
                }
                NextAttempt::None => {
                    return end_and_clean_up_after_record(attempt_id, from, failed_end(failure));
                }
                NextAttempt::AfterPause => Effect::StopActorAfterCleanUp,
                NextAttempt::AfterDeferral(deferral) => Effect::Defer { deferral },
            };
            let transition =
                transition_effect(attempt_id, from, ExecutionState::Failed, &failure.message);
            let record = Effect::RecordFailedAttempt { failure };
            let effects = vec![
                record,
                transition,
                retry_or_deferral_effect,
                clean_up_effect_after_record(attempt_id),
            ];
            (Phase::Paused { attempt_id }, effects)
        }
        Event::CancelRequested { reason } => {
            end_and_clean_up_now(attempt_id, from, cancelled_end(reason))
        }
        event => (
            Phase::AwaitingRetryDecision { attempt_id, from, failure },
            vec![Effect::Ignore { event }],
        ),
    }
}

fn stop_work(
    attempt_id: AttemptId,
    from: ExecutionState,
    ending: ExecutionEnd,
    policy: &ExecutionPolicy,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    let deadline_event = Event::DeadlinePassed { attempt_id, deadline: ExecutionDeadline::Stop };
    let stop_timer = Effect::SendLater {
        after: policy.timeouts.grace + DRIVER_STOP_TIMEOUT,
        event: deadline_event,
    };
    (Phase::Stopping { attempt_id, from, ending }, vec![Effect::StopWork, stop_timer])
}

/// Handles events of stopping work. The stop request determines the outcome, whatever the work reports.
pub(super) fn apply_while_stopping(
    attempt_id: AttemptId,
    from: ExecutionState,
    ending: ExecutionEnd,
    event: ExecutionEvent,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    match event {
        Event::Ended { attempt_id: id, result: Err(failure) }
        | Event::FailedWithRetryAfter { attempt_id: id, failure, .. }
            if id == attempt_id =>
        {
            end_and_clean_up_now(attempt_id, from, append_last_output(ending, &failure))
        }
        Event::Ended { attempt_id: id, .. }
        | Event::NeedsInput { attempt_id: id, .. }
        | Event::Suspended { attempt_id: id }
        | Event::DeadlinePassed { attempt_id: id, deadline: ExecutionDeadline::Stop }
            if id == attempt_id =>
        {
            end_and_clean_up_now(attempt_id, from, ending)
        }
        event => (Phase::Stopping { attempt_id, from, ending }, vec![Effect::Ignore { event }]),
    }
}

/// Appends the last output of the program, which often shows what it waited for when a deadline passed.
fn append_last_output(ending: ExecutionEnd, reported: &Failure) -> ExecutionEnd {
    let is_late = |failure: &Failure| matches!(failure.code, Code::IdleTimeout | Code::Timeout);
    let last_output = &reported.last_output;
    let append_output = |failure: Failure| {
        if last_output.is_empty() || !is_late(&failure) {
            return failure;
        }
        let message = format!("{}; its last output: {last_output}", failure.message);
        Failure { message, ..failure }
    };
    ExecutionEnd { failure: ending.failure.map(append_output), ..ending }
}

fn timeout_end(deadline: ExecutionDeadline, policy: &ExecutionPolicy) -> ExecutionEnd {
    let (code, description, limit) = match deadline {
        ExecutionDeadline::Start => (Code::StartTimeout, "did not start", policy.timeouts.start),
        ExecutionDeadline::Idle => {
            let limit = policy.timeouts.idle.unwrap_or_default();
            (Code::IdleTimeout, "wrote nothing", limit)
        }
        ExecutionDeadline::Run | ExecutionDeadline::Stop | ExecutionDeadline::Answer => {
            (Code::Timeout, "did not finish", policy.timeouts.run)
        }
    };
    let message = format!("it {description} within {} s", limit.as_secs_f64());
    ExecutionEnd { outcome: Outcome::Timeout, failure: Some(Failure::new(code, message)) }
}
