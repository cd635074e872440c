//! Phases before the work: idle, and claiming a slot.

use super::after::{cancelled, end, failed, queue_expired};
use super::{
    BUSY, Deadline, Ending, ExecutionEffect as Do, ExecutionEvent as E, ExecutionPhase as P,
    ExecutionPolicy,
};
use super::{ExecutionEffect, ExecutionEvent, ExecutionPhase};
use crate::model::code::Code;
use crate::model::execution::{AttemptId, State};
use crate::model::failure::Failure;

pub(super) fn idle(event: ExecutionEvent) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    match event {
        E::Begin => claim(AttemptId::FIRST, State::Idle),
        E::Cancel { why } => end(AttemptId::FIRST, State::Idle, cancelled(why)),
        E::QueueExpired => end(AttemptId::FIRST, State::Idle, queue_expired()),
        E::Denied { failure } => end(AttemptId::FIRST, State::Idle, failed(failure)),
        event => (P::Idle, vec![Do::Ignore { event }]),
    }
}

pub(super) fn claim(stamp: AttemptId, from: State) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    (P::Claiming { stamp, from, off: None }, vec![Do::Claim { stamp, from }])
}

pub(super) fn claiming(
    stamp: AttemptId,
    from: State,
    off: Option<Ending>,
    event: ExecutionEvent,
    policy: &ExecutionPolicy,
) -> (ExecutionPhase, Vec<ExecutionEffect>) {
    match (event, off) {
        (E::Claimed { at }, None) if at == stamp => {
            let with = E::Overdue { at, deadline: Deadline::Start };
            let wake = Do::Wake { after: policy.deadlines.start, with };
            (P::Starting { stamp }, vec![Do::Start { stamp }, wake])
        }
        (E::Claimed { at }, Some(ending)) if at == stamp => end(stamp, State::Starting, ending),
        (E::Busy { at, waited }, None) if at == stamp => {
            let left = policy.patience.saturating_sub(waited);
            if left.is_zero() {
                return end(stamp, from, queue_expired());
            }
            let again = Do::AskAgain { at, within: left.min(BUSY) };
            (P::Claiming { stamp, from, off: None }, vec![again])
        }
        (E::Busy { at, .. } | E::ClaimFailed { at }, Some(ending)) if at == stamp => {
            end(stamp, from, ending)
        }
        (E::ClaimDue { at }, None) if at == stamp => claim(stamp, from),
        (E::ClaimDue { at }, Some(ending)) if at == stamp => end(stamp, from, ending),
        (E::ClaimFailed { at }, None) if at == stamp => {
            let why = "the ledger did not take the order to start";
            end(stamp, from, failed(Failure::new(Code::LedgerUnavailable, why)))
        }
        (E::Gone, _) => (P::Rest { outcome: None }, vec![Do::Rest]),
        (E::Cancel { why }, None) => {
            (P::Claiming { stamp, from, off: Some(cancelled(why)) }, Vec::new())
        }
        (event, off) => (P::Claiming { stamp, from, off }, vec![Do::Ignore { event }]),
    }
}
