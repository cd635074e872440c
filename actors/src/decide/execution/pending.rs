//! Phases before the work: idle, and claiming a slot.

use super::settlement::{cancelled_end, end_and_clean_up_now, failed_end, queue_timeout_end};
use super::{
    ExecutionDeadline, ExecutionEffect as Effect, ExecutionEnd, ExecutionEvent as Event,
    ExecutionPhase as Phase, ExecutionPolicy, MAX_CLAIM_RETRY_PAUSE,
};
use super::{ExecutionEffect, ExecutionEvent, ExecutionPhase};
use crate::model::code::Code;
use crate::model::execution::{AttemptId, ExecutionState};
use crate::model::failure::Failure;

pub(super) fn apply_while_idle(event: ExecutionEvent) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    match event {
        Event::SlotAvailable => start_claim(AttemptId::FIRST, ExecutionState::Idle),
        Event::CancelRequested { reason } => {
            end_and_clean_up_now(AttemptId::FIRST, ExecutionState::Idle, cancelled_end(reason))
        }
        Event::QueueExpired => {
            end_and_clean_up_now(AttemptId::FIRST, ExecutionState::Idle, queue_timeout_end())
        }
        Event::StartRefused { failure } => {
            end_and_clean_up_now(AttemptId::FIRST, ExecutionState::Idle, failed_end(failure))
        }
        event => (Phase::Idle, vec![Effect::Ignore { event }]),
    }
}

pub(super) fn start_claim(
    attempt_id: AttemptId,
    from: ExecutionState,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    (
        Phase::Claiming { attempt_id, from, requested_end: None },
        vec![Effect::Claim { attempt_id, from }],
    )
}

pub(super) fn apply_while_claiming(
    attempt_id: AttemptId,
    from: ExecutionState,
    requested_end: Option<ExecutionEnd>,
    event: ExecutionEvent,
    policy: &ExecutionPolicy,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    match (event, requested_end) {
        (Event::Claimed { attempt_id: id }, None) if id == attempt_id => {
            let deadline_event =
                Event::DeadlinePassed { attempt_id: id, deadline: ExecutionDeadline::Start };
            let start_timer =
                Effect::SendLater { after: policy.timeouts.start, event: deadline_event };
            (Phase::Starting { attempt_id }, vec![Effect::StartAttempt { attempt_id }, start_timer])
        }
        (Event::Claimed { attempt_id: id }, Some(ending)) if id == attempt_id => {
            end_and_clean_up_now(attempt_id, ExecutionState::Starting, ending)
        }
        (Event::ResourceBusy { attempt_id: id, waited }, None) if id == attempt_id => {
            let remaining = policy.queue_timeout.saturating_sub(waited);
            if remaining.is_zero() {
                return end_and_clean_up_now(attempt_id, from, queue_timeout_end());
            }
            let retry_claim =
                Effect::RetryClaim { attempt_id: id, within: remaining.min(MAX_CLAIM_RETRY_PAUSE) };
            (Phase::Claiming { attempt_id, from, requested_end: None }, vec![retry_claim])
        }
        (
            Event::ResourceBusy { attempt_id: id, .. } | Event::ClaimFailed { attempt_id: id },
            Some(ending),
        ) if id == attempt_id => end_and_clean_up_now(attempt_id, from, ending),
        (Event::ClaimRetryDue { attempt_id: id }, None) if id == attempt_id => {
            start_claim(attempt_id, from)
        }
        (Event::ClaimRetryDue { attempt_id: id }, Some(ending)) if id == attempt_id => {
            end_and_clean_up_now(attempt_id, from, ending)
        }
        (Event::ClaimFailed { attempt_id: id }, None) if id == attempt_id => {
            let message = "the ledger did not take the order to start";
            end_and_clean_up_now(
                attempt_id,
                from,
                failed_end(Failure::new(Code::LedgerUnavailable, message)),
            )
        }
        (Event::SettledElsewhere, _) => (Phase::Done { outcome: None }, vec![Effect::Finish]),
        (Event::CancelRequested { reason }, None) => (
            Phase::Claiming { attempt_id, from, requested_end: Some(cancelled_end(reason)) },
            Vec::new(),
        ),
        (event, requested_end) => {
            (Phase::Claiming { attempt_id, from, requested_end }, vec![Effect::Ignore { event }])
        }
    }
}
