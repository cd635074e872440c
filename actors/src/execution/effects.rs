//! Effects of an execution: each one is a call of a part, or connects two parts.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{ClaimBlocked, ExecutionActorState, FailedAttemptReport};
use crate::decide::execution::ExecutionEvent::{self, DeadlinePassed};
use crate::decide::execution::{ExecutionEffect as Effect, ExecutionEnd};
use crate::decide::retry::FailedAttempt;
use crate::model::agent::queue::QueueReason;
use crate::model::agent::quota::Deferral;
use crate::model::execution::event::EventKind;
use crate::model::execution::{AttemptId, ExecutionState, StateChange};

impl ExecutionActorState {
    pub(super) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Claim { attempt_id, from } => self.begin_claim(attempt_id, from),
            Effect::RetryClaim { attempt_id, within } => {
                self.claim.schedule_retry(&mut self.tasks, attempt_id, within);
            }
            Effect::StartAttempt { attempt_id } => self.start(attempt_id),
            Effect::ResumeAttempt { attempt_id } => self.resume(attempt_id),
            Effect::StopWork => self.attempt.stop(),
            Effect::SendLater { after, event } => self.schedule_event(after, event),
            Effect::CheckSilence { attempt_id, after } => {
                self.attempt.schedule_silence_check(&mut self.tasks, attempt_id, after);
            }
            Effect::ReadUsage { attempt_id } => {
                self.attempt.start_usage_reading(&mut self.tasks, attempt_id);
            }
            Effect::RecordDeadlineWarning { deadline_kind, remaining, message } => {
                let (at, context) = (self.context.now(), &self.context);
                let warning =
                    context.log_and_build_deadline_warning(at, deadline_kind, remaining, message);
                self.persistence.add_event(at, warning);
            }
            Effect::RecordTransition { from, to, attempt_id, reason } => {
                let at = self.context.now();
                self.record_transition(StateChange::new((from, to), attempt_id, at, reason));
            }
            Effect::RecordInputRequest { attempt_id, required_input } => {
                let at = self.context.now();
                self.record_transition(StateChange::waiting_for(attempt_id, at, required_input));
            }
            Effect::ReportFailure { attempt_id, failure, retry_after, may_have_received_input } => {
                let (number, fence) = (attempt_id.attempt, self.persistence.fence());
                let failed_attempt = FailedAttempt { number, may_have_received_input, retry_after };
                let first_granted_at = self.claim.first_granted_at();
                let totals = self.usage_recorder().totals(first_granted_at);
                // The agent's actor decides what follows a failed attempt.
                let report =
                    FailedAttemptReport { attempt_id, fence, failed_attempt, failure, totals };
                (self.context.on_attempt_failed)(report);
            }
            Effect::RecordFailedAttempt { failure } => {
                self.interactions().close_lost_questions();
                self.persistence.add_event(self.context.now(), EventKind::AttemptFailed(failure));
            }
            Effect::CleanUp { attempt_id, waits_for_end_record: after_record } => {
                let written_receiver = after_record.then(|| self.persistence.notify_when_written());
                self.attempt.start_clean_up(&mut self.tasks, attempt_id, written_receiver);
            }
            Effect::Settle { attempt_id, ending } => self.settle(attempt_id, ending),
            Effect::StopActorAfterCleanUp => self.stop.plan_stop(),
            Effect::Defer { deferral } => self.defer(deferral),
            Effect::Finish => self.finish(),
            Effect::Ignore { event } => self.context.log_ignored(&event),
        }
    }

    fn begin_claim(&mut self, attempt_id: AttemptId, from: ExecutionState) {
        if !self.claim.try_reserve_memory_for_claim() {
            let reason = QueueReason::InsufficientMemory;
            return self.handle_blocked_claim(ClaimBlocked { attempt_id, reason, workspace: None });
        }
        let request = self.context.claim_request(self.persistence.fence(), attempt_id, from);
        self.persistence.request_claim(request);
    }

    fn start(&mut self, attempt_id: AttemptId) {
        let (fence, workspace) = (self.persistence.fence(), self.claim.workspace());
        self.attempt.start(attempt_id, &self.context, fence, workspace);
    }

    fn resume(&mut self, attempt_id: AttemptId) {
        let channel = self.context.driver.partial_answer_channel();
        self.published.publish_resumption(self.attempt.attempt_id(), channel);
        self.claim.reserve_memory_unchecked();
        let (fence, workspace) = (self.persistence.fence(), self.claim.workspace());
        self.attempt.resume(attempt_id, &self.context, fence, workspace);
    }

    fn schedule_event(&mut self, delay: Duration, event: ExecutionEvent) {
        if matches!(event, DeadlinePassed { .. }) {
            self.published.set_deadline(self.context.now(), delay);
        }
        self.tasks.send_after(delay, event);
    }

    fn record_transition(&mut self, state_change: StateChange) {
        let StateChange { from, to, at, .. } = state_change;
        debug_assert!(from.may_become(to), "{from} -> {to}");
        self.persistence.add_event(at, EventKind::StateChanged(state_change));
        self.publish(to);
    }

    pub(super) fn publish(&mut self, state: ExecutionState) {
        let channel = self.context.driver.partial_answer_channel();
        self.published.publish(state, self.context.now(), self.attempt.attempt_id(), channel);
        tracing::debug!(execution = %self.context.id, %state, "moved");
    }

    /// Records the deferral with its transition, and stops the actor.
    fn defer(&mut self, deferral: Deferral) {
        self.context.log_deferral(deferral);
        self.persistence.add_event(self.context.now(), EventKind::Deferred(deferral));
        self.stop.plan_deferral(deferral);
    }

    /// Reports the end, and settles the execution. The claim of the workspace stays until the ledger has recorded it.
    fn settle(&mut self, attempt_id: AttemptId, ending: ExecutionEnd) {
        // An execution that ends while it waits for a folder must not hold up the ones behind it.
        self.claim.leave_workspace_queue();
        self.context.log_end(&ending, self.claim.elapsed_since_first_grant());
        let at = self.context.now();
        self.report_execution_end(&ending, at);
        let (claim, exit_code) = ((attempt_id, self.persistence.fence()), self.attempt.exit_code());
        self.persistence.settle(self.context.settlement(claim, ending, exit_code, at));
    }

    /// Reports the outcome of the execution, without waiting for the driver's report about the attempt.
    fn report_execution_end(&mut self, ending: &ExecutionEnd, at: DateTime<Utc>) {
        // After a stop the report of the driver may come late or never, so the end of the attempt is reported here.
        let code = ending.failure.as_ref().map(|failure| failure.code);
        if let Some(attempt) = self.attempt.attempt_with_unreported_end() {
            self.usage_recorder().charge_and_report_attempt_end(attempt.attempt_id, code);
        }
        let (attempt_id, tokens) = (self.attempt.attempt_id(), self.usage.tokens());
        self.context.report_execution_end(ending, attempt_id, tokens, at);
    }
}
