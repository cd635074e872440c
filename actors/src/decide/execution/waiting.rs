//! Phases between two attempts: waiting for input, or pausing before a retry.

use std::time::Duration;

use super::pending::start_claim;
use super::settlement::{cancelled_end, end_execution, failed_end, queue_timeout_end};
use super::{
    Deadline, ExecutionEffect as Do, ExecutionEnd, ExecutionEvent as E, ExecutionPhase as P,
};
use super::{ExecutionEffect, ExecutionEvent, ExecutionPhase};
use crate::model::code::Code;
use crate::model::execution::{AttemptId, Outcome, State};
use crate::model::failure::Failure;

pub(super) fn step_waiting(
    attempt_id: AttemptId,
    event: ExecutionEvent,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    match event {
        E::QueueExpired => end_execution(attempt_id, State::Waiting, queue_timeout_end()),
        E::Denied { failure } => end_execution(attempt_id, State::Waiting, failed_end(failure)),
        E::Answered => start_claim(attempt_id.next_turn(), State::Waiting),
        E::Cancel { reason } => end_execution(attempt_id, State::Waiting, cancelled_end(reason)),
        E::DeadlinePassed { at, deadline: Deadline::Answer } if at == attempt_id => {
            let failure = Failure::new(Code::Timeout, "its question was not answered in time");
            let ending = ExecutionEnd { outcome: Outcome::Timeout, failure: Some(failure) };
            end_execution(attempt_id, State::Waiting, ending)
        }
        event => (P::Waiting { attempt_id }, vec![Do::Ignore { event }]),
    }
}

pub(super) fn step_cleaning_up(
    attempt_id: AttemptId,
    pause: Duration,
    event: ExecutionEvent,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    match event {
        E::Cleaned { at } if at == attempt_id => {
            let retry_timer = Do::SendLater { after: pause, with: E::RetryDue { at } };
            (P::Paused { attempt_id }, vec![retry_timer])
        }
        E::Cancel { reason } => end_execution(attempt_id, State::Failed, cancelled_end(reason)),
        event => (P::CleaningUp { attempt_id, pause }, vec![Do::Ignore { event }]),
    }
}

pub(super) fn step_paused(
    attempt_id: AttemptId,
    event: ExecutionEvent,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    match event {
        E::RetryDue { at } if at == attempt_id => {
            start_claim(attempt_id.next_attempt(), State::Failed)
        }
        E::QueueExpired => end_execution(attempt_id, State::Failed, queue_timeout_end()),
        E::Denied { failure } => end_execution(attempt_id, State::Failed, failed_end(failure)),
        E::Cancel { reason } => end_execution(attempt_id, State::Failed, cancelled_end(reason)),
        event => (P::Paused { attempt_id }, vec![Do::Ignore { event }]),
    }
}
