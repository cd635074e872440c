//! Submission of a request: admission, duplicates, and the start of the work.

use std::sync::Arc;

use super::admission::{AdmissionDecision, decide_after_recording, message_reused_failure};
use super::coalescer::OutcomeReader;
use super::{AgentActorState, RecordingResult, Submission, SubmitReply};
use crate::decide::admission::{AdmissionEffect, AdmissionEvent};
use crate::model::execution::record::ExecutionRecord;
use crate::model::execution::request::Request;
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;
use crate::ports::ledger::{AcceptResult, LedgerError};

impl AgentActorState {
    /// Admits a request or rejects it at once. An answer to a question waits while the actor of the question is still
    /// stopping.
    pub(super) fn submit(&mut self, submission: Submission) {
        let (request, continued) = (&submission.request, submission.continued_record.as_ref());
        if let Some(record) = continued.filter(|record| self.running.contains(record.id)) {
            return self.pending_commands.store_answer(record.id, submission);
        }
        if let Some(reply) = self.duplicate_reply(&submission) {
            _ = submission.reply.send(reply);
            return;
        }
        let (lifecycle, args) = (&self.lifecycle, &self.args);
        if let Err(failure) = self.admission.check_admission(request, continued, lifecycle, args) {
            return self.admission.reject(submission, failure);
        }
        self.admission.queue_mut().set_slots_in_clean_up(self.running.count_in_clean_up());
        let arrived = self.admission.insert(submission, &self.args);
        self.apply_event(arrived);
    }

    /// Returns the answer to a request that repeats the one of an unfinished execution; `None` for any other request.
    fn duplicate_reply(&self, submission: &Submission) -> Option<Result<SubmitReply, Failure>> {
        let found = self.admission.find_duplicate(submission, &self.lifecycle, &self.args)?;
        let reused = || Some(Err(message_reused_failure()));
        let AcceptResult::Duplicate(original) = found else { return reused() };
        // An execution with an outcome can be deleted, which only the ledger knows.
        let progress = self.watch(original).filter(|it| it.borrow().outcome.is_none())?;
        Some(Ok(SubmitReply::for_existing_execution(original, Some(progress))))
    }

    /// Queues an execution of an earlier process again.
    pub(super) fn requeue_recovered(&mut self, record: &ExecutionRecord, request: Arc<Request>) {
        let recovered = self.admission.insert_recovered(record, request, &self.args);
        self.apply_event(recovered);
        self.admission.schedule_timeout(&self.args, &mut self.tasks);
    }

    /// Applies an event to the queue. No other function changes the order or performs its effects.
    pub(super) fn apply_event(&mut self, event: AdmissionEvent) {
        let is_draining = self.lifecycle.is_draining();
        for effect in self.admission.apply(event) {
            match effect {
                AdmissionEffect::Start(id) => {
                    if let Some(start) = self.admission.prepare_start(id, is_draining, &self.args) {
                        self.start_execution_actor(start);
                    }
                }
                AdmissionEffect::ReturnOriginal(id, original) => {
                    self.admission.reply_with_original(id, original, self.watch(original));
                }
                effect => self.admission.perform(effect, &self.args, &mut self.tasks),
            }
        }
        // After the effects: a probe goes to the first request of the new order.
        if !is_draining && let Some(probe) = self.admission.request_probe(&self.args) {
            self.apply_event(probe);
        }
        // Positions are known only now: each effect may change the order.
        self.admission.notify_change(&self.args, &mut self.tasks);
    }

    /// Handles the result of recording a request, which may be a duplicate of another one.
    pub(super) fn handle_recording_result(
        &mut self,
        id: ExecutionId,
        result: Result<RecordingResult, LedgerError>,
    ) {
        let decision = decide_after_recording(&self.args.spec.id, result);
        let event = self.admission.apply_admission_decision(id, &decision, &self.args);
        self.apply_event(event);
        self.update_lifecycle(); // A drain may have waited for the answer to this submitter.
        match decision {
            AdmissionDecision::Coalesce(source) => {
                // The other execution may have ended while this one was recorded: no later event would release it.
                let is_queued = self.admission.queue().contains(source);
                let is_active = is_queued || self.running.contains(source);
                let reader = OutcomeReader { args: &self.args, tasks: &mut self.tasks };
                self.coalescer.coalesce(id, source, is_active, reader);
            }
            AdmissionDecision::Reject(_) => self.release_coalesced(id),
            AdmissionDecision::Admit | AdmissionDecision::TakeResult(_) => {}
            AdmissionDecision::ReturnOriginal(_) => {}
        }
    }

    /// Releases the requests that wait for an execution which has ended or stopped for a question.
    pub(super) fn release_coalesced(&mut self, source: ExecutionId) {
        self.coalescer.release(source, OutcomeReader { args: &self.args, tasks: &mut self.tasks });
    }

    /// Releases a request: it takes the result of `source`, or does the work itself.
    pub(super) fn end_coalescing(&mut self, id: ExecutionId, source: Option<ExecutionId>) {
        if self.admission.queue_mut().end_coalescing(id, source) {
            self.apply_event(AdmissionEvent::CoalescingEnded(id));
        }
    }
}
