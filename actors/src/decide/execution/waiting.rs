//! Phases without work: waiting for input, for the end of a pause or deferral, or for the next start of the service.

use super::pending::start_claim;
use super::settlement::{cancelled_end, end_and_clean_up_now, failed_end, queue_timeout_end};
use super::{
    ExecutionDeadline, ExecutionEffect as Effect, ExecutionEnd, ExecutionEvent as Event,
    ExecutionPhase as Phase,
};
use super::{ExecutionEffect, ExecutionEvent, ExecutionPhase};
use crate::model::code::Code;
use crate::model::execution::{AttemptId, ExecutionState, Outcome};
use crate::model::failure::Failure;

pub(super) fn apply_while_waiting(
    attempt_id: AttemptId,
    event: ExecutionEvent,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    match event {
        Event::QueueExpired => {
            end_and_clean_up_now(attempt_id, ExecutionState::Waiting, queue_timeout_end())
        }
        Event::StartRefused { failure } => {
            end_and_clean_up_now(attempt_id, ExecutionState::Waiting, failed_end(failure))
        }
        Event::InputReceived => start_claim(attempt_id.next_turn(), ExecutionState::Waiting),
        Event::CancelRequested { reason } => {
            end_and_clean_up_now(attempt_id, ExecutionState::Waiting, cancelled_end(reason))
        }
        Event::DeadlinePassed { attempt_id: id, deadline: ExecutionDeadline::Answer }
            if id == attempt_id =>
        {
            let failure = Failure::new(Code::Timeout, "its question was not answered in time");
            let ending = ExecutionEnd { outcome: Outcome::Timeout, failure: Some(failure) };
            end_and_clean_up_now(attempt_id, ExecutionState::Waiting, ending)
        }
        event => (Phase::Waiting { attempt_id }, vec![Effect::Ignore { event }]),
    }
}

pub(super) fn apply_while_paused(
    attempt_id: AttemptId,
    event: ExecutionEvent,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    match event {
        Event::RetryDue { attempt_id: id } if id == attempt_id => {
            start_claim(attempt_id.next_attempt(), ExecutionState::Failed)
        }
        Event::QueueExpired => {
            end_and_clean_up_now(attempt_id, ExecutionState::Failed, queue_timeout_end())
        }
        Event::StartRefused { failure } => {
            end_and_clean_up_now(attempt_id, ExecutionState::Failed, failed_end(failure))
        }
        Event::CancelRequested { reason } => {
            end_and_clean_up_now(attempt_id, ExecutionState::Failed, cancelled_end(reason))
        }
        event => (Phase::Paused { attempt_id }, vec![Effect::Ignore { event }]),
    }
}

/// Handles events of suspended work: nothing changes before the next start of the service, or before the agent's actor
/// settles the execution.
pub(super) fn apply_while_suspended(
    attempt_id: AttemptId,
    event: ExecutionEvent,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    (Phase::Suspended { attempt_id }, vec![Effect::Ignore { event }])
}
