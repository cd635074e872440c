//! Phases between two attempts: waiting for input, or pausing before a retry.

use std::time::Duration;

use super::after::{cancelled, end, failed, queue_expired};
use super::before::claim;
use super::{Deadline, Ending, ExecutionEffect as Do, ExecutionEvent as E, ExecutionPhase as P};
use super::{ExecutionEffect, ExecutionEvent, ExecutionPhase};
use crate::model::code::Code;
use crate::model::execution::{AttemptId, Outcome, State};
use crate::model::failure::Failure;

pub(super) fn waiting(
    stamp: AttemptId,
    event: ExecutionEvent,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    match event {
        E::QueueExpired => end(stamp, State::Waiting, queue_expired()),
        E::Denied { failure } => end(stamp, State::Waiting, failed(failure)),
        E::Answered => claim(stamp.continued(), State::Waiting),
        E::Cancel { why } => end(stamp, State::Waiting, cancelled(why)),
        E::Overdue { at, deadline: Deadline::Answer } if at == stamp => {
            let failure = Failure::new(Code::Timeout, "its question was not answered in time");
            let ending = Ending { outcome: Outcome::Timeout, failure: Some(failure) };
            end(stamp, State::Waiting, ending)
        }
        event => (P::Waiting { stamp }, vec![Do::Ignore { event }]),
    }
}

pub(super) fn clearing(
    stamp: AttemptId,
    pause: Duration,
    event: ExecutionEvent,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    match event {
        E::Cleaned { at } if at == stamp => {
            let wake = Do::Wake { after: pause, with: E::RetryDue { at } };
            (P::Paused { stamp }, vec![wake])
        }
        E::Cancel { why } => end(stamp, State::Failed, cancelled(why)),
        event => (P::Clearing { stamp, pause }, vec![Do::Ignore { event }]),
    }
}

pub(super) fn paused(
    stamp: AttemptId,
    event: ExecutionEvent,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    match event {
        E::RetryDue { at } if at == stamp => claim(stamp.retried(), State::Failed),
        E::QueueExpired => end(stamp, State::Failed, queue_expired()),
        E::Denied { failure } => end(stamp, State::Failed, failed(failure)),
        E::Cancel { why } => end(stamp, State::Failed, cancelled(why)),
        event => (P::Paused { stamp }, vec![Do::Ignore { event }]),
    }
}
