//! Executions that hold a slot: start, cancellation, end and takeover.

use std::sync::Arc;

use ractor::RpcReplyPort;
use tokio::sync::watch::Receiver;

use super::AgentActorState;
use super::lifecycle::RemainingWork;
use super::running::{ExecutionControl, ExecutionStart};
use crate::decide::admission::AdmissionEvent;
use crate::decide::execution::{ExecutionDeadline, ExecutionEvent};
use crate::model::execution::ExecutionState;
use crate::model::execution::progress::Progress;
use crate::model::execution::record::ExecutionRecord;
use crate::model::id::ExecutionId;
use crate::model::observation::status::LastOutcome;

impl AgentActorState {
    /// Starts the actor of an execution.
    pub(super) fn start_execution_actor(&mut self, start: ExecutionStart) {
        self.running.start(start, &self.args.services, &mut self.tasks);
    }

    /// Returns the control of the running executions.
    pub(super) fn control(&mut self) -> ExecutionControl<'_> {
        ExecutionControl { running: &mut self.running, args: &self.args, tasks: &mut self.tasks }
    }

    /// Ends a request that has not run, if it waits.
    pub(super) fn end_before_start(&mut self, id: ExecutionId, first_event: ExecutionEvent) {
        let Some(entry) = self.admission.queue_mut().remove(id) else { return };
        let definition = self.args.definition();
        self.start_execution_actor(ExecutionStart { id, entry, definition, first_event });
        self.apply_event(AdmissionEvent::LeftQueue(id));
    }

    /// Cancels an execution in any state: running, queued, or with an open question.
    pub(super) fn cancel(
        &mut self,
        record: &ExecutionRecord,
        reason: String,
    ) -> Option<Receiver<Progress>> {
        let id = record.id;
        if let Some(progress) = self.running.progress(id) {
            // The actor may stop before it reads the request, and then ignores it. The agent keeps the request until
            // the actor has stopped, and cancels the execution then if it has not ended.
            self.pending_commands.store_cancellation(id, reason.clone());
            if progress.state == ExecutionState::Waiting || progress.deferral.is_some() {
                return None;
            }
            self.control().cancel(id, reason);
        } else if self.admission.queue().contains(id) {
            self.end_before_start(id, ExecutionEvent::CancelRequested { reason });
        } else {
            let is_draining = self.lifecycle.is_draining();
            self.control().cancel_without_actor(record, reason, is_draining);
        }
        self.watch(id)
    }

    /// Ends an execution whose question was not answered in time. A question of a later turn has its own deadline.
    pub(super) fn handle_answer_timeout(&mut self, record: &ExecutionRecord) {
        let (id, attempt_id) = (record.id, record.attempt_id);
        let is_active = self.running.contains(id) || self.admission.queue().contains(id);
        if record.awaits_answer() && !is_active {
            let (definition, deadline) = (self.args.definition(), ExecutionDeadline::Answer);
            let event = ExecutionEvent::DeadlinePassed { attempt_id, deadline };
            let start = ExecutionStart::for_ending_open_question(record, definition, event);
            self.start_execution_actor(start);
        }
    }

    /// Subscribes to the progress of an execution that runs or waits.
    pub(super) fn watch(&self, id: ExecutionId) -> Option<Receiver<Progress>> {
        self.running.watch(id).or_else(|| self.admission.queue().watch(id))
    }

    /// Handles the stop of an execution's actor: the execution has ended, is suspended, was deferred, waits for input,
    /// or pauses before its next attempt. Otherwise the ledger refused the claim: an actor of an earlier process had
    /// claimed the execution, and will not return.
    pub(super) fn handle_actor_termination(&mut self, id: ExecutionId) {
        match self.running.progress(id) {
            Some(progress) if progress.needs_no_actor() => self.release_execution(id),
            Some(Progress { deferral: Some(deferred), .. }) => self.handle_deferral(id, deferred),
            Some(Progress { state: ExecutionState::Waiting, .. }) => {
                self.release_execution(id);
                let (ledger, spec) = (Arc::clone(&self.args.services.ledger), &self.args.spec);
                self.tasks.schedule_answer_timeout(ledger, id, spec.limits.timeouts.question);
            }
            Some(_) | None => self.control().pause_before_retry_or_settle(id),
        }
    }

    /// Handles an execution whose actor has stopped, and whose outcome or open question is in the ledger.
    pub(super) fn release_execution(&mut self, id: ExecutionId) {
        let removed = self.running.remove(id);
        self.admission.remove_from_duplicate_cache(id);
        if let Some(outcome) = removed.and_then(|execution| execution.progress.borrow().outcome) {
            self.pending_commands.take_cancellation(id);
            self.last_outcome =
                Some(LastOutcome { id, outcome, at: self.args.services.clock.now() });
        }
        self.apply_event(AdmissionEvent::Ended(id));
        self.release_coalesced(id);
        self.pending_commands.apply_cancellation(id, &self.args, &mut self.tasks);
        self.pending_commands.take_answer(id).into_iter().for_each(|answer| self.submit(answer));
        self.update_lifecycle();
    }

    /// Stops admitting and starting. The reply follows once nothing runs.
    pub(super) fn drain(&mut self, reply: RpcReplyPort<()>) {
        self.lifecycle.drain(reply);
        self.update_lifecycle();
    }

    /// Stops admitting requests. Running and queued executions continue to their end.
    pub(super) fn begin_removal(&mut self, reply: RpcReplyPort<()>) {
        self.lifecycle.begin_removal(reply);
        self.update_lifecycle();
    }

    /// Handles a change of the remaining work, for which a drain or a removal may wait.
    pub(super) fn update_lifecycle(&mut self) {
        let queue = self.admission.queue();
        let remaining = RemainingWork::new(&self.running, queue, &self.pending_commands);
        self.lifecycle.handle_work_change(remaining, &self.args, &mut self.tasks);
    }
}
