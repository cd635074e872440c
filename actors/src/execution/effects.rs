//! Effects of an execution: each one is a call of a part, or connects two parts.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{ClaimHeldUp, ExecutionData};
use crate::decide::execution::{Ending, ExecutionEffect, ExecutionEvent};
use crate::model::agent::queue::QueueReason;
use crate::model::agent::quota::AccountCause;
use crate::model::execution::event::EventKind;
use crate::model::execution::{AttemptId, State, StateChange};

impl ExecutionData {
    pub(super) fn perform(&mut self, effect: ExecutionEffect) {
        match effect {
            ExecutionEffect::Claim { stamp, from } => self.begin_claim(stamp, from),
            ExecutionEffect::AskAgain { at, within } => {
                self.claim.retry(&mut self.tasks, at, within);
            }
            ExecutionEffect::Start { stamp } => self.start(stamp),
            ExecutionEffect::TakeUp { stamp } => self.resume(stamp),
            ExecutionEffect::Stop => self.attempt.stop(),
            ExecutionEffect::Wake { after, with } => self.wake(after, with),
            ExecutionEffect::Look { at, after } => {
                self.attempt.check_silence(&mut self.tasks, at, after);
            }
            ExecutionEffect::Measure { at } => self.attempt.measure(&mut self.tasks, at),
            ExecutionEffect::Warn { limit, left, message } => {
                let at = self.context.now();
                self.persistence.add(at, self.context.warn(at, limit, left, message));
            }
            ExecutionEffect::Move { from, to, stamp, why } => {
                self.moved(StateChange::new((from, to), stamp, self.context.now(), why));
            }
            ExecutionEffect::Interrupt { stamp, interruption } => {
                self.moved(StateChange::interrupted(stamp, self.context.now(), interruption));
            }
            ExecutionEffect::Note { failure } => {
                self.persistence.add(self.context.now(), EventKind::AttemptFailed(failure));
            }
            ExecutionEffect::Clean { stamp } => self.attempt.clean(&mut self.tasks, stamp),
            ExecutionEffect::Settle { stamp, ending } => self.settle(stamp, ending),
            ExecutionEffect::Park => self.stop.ask(),
            ExecutionEffect::ParkFor { wait, cause, overloads, .. } => {
                self.defer(wait, cause, overloads);
            }
            ExecutionEffect::Rest => self.finish(),
            ExecutionEffect::Ignore { event } => {
                tracing::debug!(execution = %self.context.id, ?event, "ignored");
            }
        }
    }

    fn begin_claim(&mut self, stamp: AttemptId, from: State) {
        if !self.claim.begin(stamp) {
            let reason = QueueReason::InsufficientMemory;
            return self.held_up(ClaimHeldUp { at: stamp, reason, workspace: None });
        }
        let (at, reason) = (self.context.now(), "resources are free".to_owned());
        let moved = StateChange::new((from, State::Starting), stamp, at, reason);
        self.persistence.claim(self.context.claim_request(self.persistence.fence(), moved));
    }

    fn start(&mut self, stamp: AttemptId) {
        let (fence, workspace) = (self.persistence.fence(), self.claim.workspace());
        self.attempt.start(stamp, &self.context, fence, workspace);
    }

    fn resume(&mut self, stamp: AttemptId) {
        let channel = self.context.driver.growing_answer();
        self.published.publish_growing(self.attempt.stamp(), channel);
        self.claim.hold_memory();
        let (fence, workspace) = (self.persistence.fence(), self.claim.workspace());
        self.attempt.resume(stamp, &self.context, fence, workspace);
    }

    fn wake(&mut self, after: Duration, with: ExecutionEvent) {
        if matches!(with, ExecutionEvent::Overdue { .. } | ExecutionEvent::RetryDue { .. }) {
            self.published.set_deadline(self.context.now(), after);
        }
        self.tasks.send_after(after, with);
    }

    fn moved(&mut self, moved: StateChange) {
        let StateChange { from, to, at, .. } = moved;
        debug_assert!(from.may_become(to), "{from} -> {to}");
        self.persistence.add(at, EventKind::StateChanged(moved));
        self.publish(to);
    }

    pub(super) fn publish(&mut self, state: State) {
        let (stamp, channel) = (self.attempt.stamp(), self.context.driver.growing_answer());
        self.published.publish(state, self.context.now(), stamp, channel);
        tracing::debug!(execution = %self.context.id, %state, "moved");
    }

    /// Records the deferral with its transition, and stops the actor.
    fn defer(&mut self, wait: Duration, cause: AccountCause, overloads: u32) {
        let (now, attempt) = (self.context.now(), self.attempt.stamp().attempt);
        let until = deferred_until(now, wait);
        let (id, agent) = (self.context.id, &self.context.spec.id);
        tracing::info!(execution = %id, %agent, %until, cause = cause.as_str(), "deferred");
        let deferral = self.machine.deferral(until, attempt, cause, overloads);
        self.persistence.add(now, EventKind::Deferred(deferral));
        self.stop.defer(deferral);
    }

    /// Reports the end, and settles the execution. The claim of the workspace stays until the ledger has recorded it.
    fn settle(&mut self, stamp: AttemptId, ending: Ending) {
        // An execution that ends while it waits for a folder must not hold up the ones behind it.
        self.claim.leave_queue();
        self.context.log_end(&ending, self.claim.took());
        let at = self.context.now();
        self.report_end(&ending, at);
        let (fence, exit_code) = (self.persistence.fence(), self.attempt.exit_code());
        self.persistence.settle(self.context.settlement((stamp, fence), ending, exit_code, at));
    }

    /// Reports the outcome of the execution, without waiting for the driver's report about the attempt.
    fn report_end(&mut self, ending: &Ending, at: DateTime<Utc>) {
        // After a stop the report of the driver may come late or never, so the end of the attempt is reported here.
        let code = ending.failure.as_ref().map(|failure| failure.code);
        if let Some(begun) = self.attempt.open() {
            self.report_attempt(begun.stamp, code);
        }
        let (stamp, tokens) = (self.attempt.stamp(), self.usage.tokens());
        self.context.report_end(ending, stamp, tokens, at);
    }
}

/// Returns the end of a deferral, as wall time, because it is stored: no other clock survives a restart.
fn deferred_until(now: DateTime<Utc>, wait: Duration) -> DateTime<Utc> {
    let wait = TimeDelta::from_std(wait).unwrap_or_default();
    now.checked_add_signed(wait).unwrap_or(now)
}
