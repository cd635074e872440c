//! Phases before the work: idle, and claiming a slot.

use super::settlement::{cancelled_end, end_execution, failed_end, queue_timeout_end};
use super::{
    CLAIM_RETRY_PAUSE, Deadline, ExecutionEffect as Do, ExecutionEnd, ExecutionEvent as E,
    ExecutionPhase as P, ExecutionPolicy,
};
use super::{ExecutionEffect, ExecutionEvent, ExecutionPhase};
use crate::model::code::Code;
use crate::model::execution::{AttemptId, State};
use crate::model::failure::Failure;

pub(super) fn step_idle(event: ExecutionEvent) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    match event {
        E::Begin => start_claim(AttemptId::FIRST, State::Idle),
        E::Cancel { reason } => end_execution(AttemptId::FIRST, State::Idle, cancelled_end(reason)),
        E::QueueExpired => end_execution(AttemptId::FIRST, State::Idle, queue_timeout_end()),
        E::Denied { failure } => end_execution(AttemptId::FIRST, State::Idle, failed_end(failure)),
        event => (P::Idle, vec![Do::Ignore { event }]),
    }
}

pub(super) fn start_claim(
    attempt_id: AttemptId,
    from: State,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    (P::Claiming { attempt_id, from, noted_end: None }, vec![Do::Claim { attempt_id, from }])
}

pub(super) fn step_claiming(
    attempt_id: AttemptId,
    from: State,
    noted_end: Option<ExecutionEnd>,
    event: ExecutionEvent,
    policy: &ExecutionPolicy,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    match (event, noted_end) {
        (E::Claimed { at }, None) if at == attempt_id => {
            let with = E::DeadlinePassed { at, deadline: Deadline::Start };
            let start_timer = Do::SendLater { after: policy.deadlines.start, with };
            (P::Starting { attempt_id }, vec![Do::Start { attempt_id }, start_timer])
        }
        (E::Claimed { at }, Some(ending)) if at == attempt_id => {
            end_execution(attempt_id, State::Starting, ending)
        }
        (E::Busy { at, waited }, None) if at == attempt_id => {
            let left = policy.queue_timeout.saturating_sub(waited);
            if left.is_zero() {
                return end_execution(attempt_id, from, queue_timeout_end());
            }
            let retry_claim = Do::RetryClaim { at, within: left.min(CLAIM_RETRY_PAUSE) };
            (P::Claiming { attempt_id, from, noted_end: None }, vec![retry_claim])
        }
        (E::Busy { at, .. } | E::ClaimFailed { at }, Some(ending)) if at == attempt_id => {
            end_execution(attempt_id, from, ending)
        }
        (E::ClaimDue { at }, None) if at == attempt_id => start_claim(attempt_id, from),
        (E::ClaimDue { at }, Some(ending)) if at == attempt_id => {
            end_execution(attempt_id, from, ending)
        }
        (E::ClaimFailed { at }, None) if at == attempt_id => {
            let message = "the ledger did not take the order to start";
            end_execution(
                attempt_id,
                from,
                failed_end(Failure::new(Code::LedgerUnavailable, message)),
            )
        }
        (E::Superseded, _) => (P::Done { outcome: None }, vec![Do::Finish]),
        (E::Cancel { reason }, None) => {
            (P::Claiming { attempt_id, from, noted_end: Some(cancelled_end(reason)) }, Vec::new())
        }
        (event, noted_end) => {
            (P::Claiming { attempt_id, from, noted_end }, vec![Do::Ignore { event }])
        }
    }
}
