//! Waits of queued executions: for their slot until the queue timeout, for the agent's credential, and for the quota of
//! their account. A deferred execution holds only its request.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use tokio::time::{Instant, sleep};

use super::credential_gate::GateChange;
use super::queue::QueuedRequest;
use super::{AgentActorState, AgentArgs, AgentDefinition, AgentMsg};
use crate::decide::admission::AdmissionEvent;
use crate::decide::execution::ExecutionEvent;
use crate::decide::retry::deferral::resume_jitter;
use crate::model::agent::quota::Deferral;
use crate::model::id::ExecutionId;
use crate::ports::clock::Clock;

/// Interval between two checks of the wall clock, which may have been set.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(60);

impl AgentActorState {
    /// Handles the deferral of an execution whose actor has stopped. Without a next attempt the execution is lost.
    pub(super) fn handle_deferral(&mut self, id: ExecutionId, deferral: Deferral) {
        let Some(execution) = self.running.remove(id) else { return };
        // The probe of the execution is given back at the end of this function: no other execution may probe before
        // the queue knows the deferral.
        let now = self.args.services.clock.now();
        let Some((entry, _probe)) = execution.into_deferred_entry_and_probe(deferral, now) else {
            return self.running.settle_lost(id, &self.args, &mut self.tasks);
        };
        self.defer(id, entry, deferral);
        self.pending_commands.apply_cancellation(id, &self.args, &mut self.tasks);
        self.update_lifecycle();
    }

    /// Adds a deferred execution to the queue. Its slot is free until the end of the deferral.
    pub(super) fn defer(&mut self, id: ExecutionId, entry: QueuedRequest, deferral: Deferral) {
        self.admission.queue_mut().insert(id, entry);
        self.apply_event(AdmissionEvent::Deferred(id));
        let clock = Arc::clone(&self.args.services.clock);
        self.tasks.spawn_and_send_result(wait_for_deferral_end(clock, id, deferral));
    }

    /// Queues a deferred execution again, before all later arrivals.
    pub(super) fn requeue_deferred(&mut self, id: ExecutionId, deferral: Deferral) {
        if self.admission.end_deferral(id, deferral, &self.args) {
            self.apply_event(AdmissionEvent::DeferralEnded(id));
            self.admission.schedule_timeout(&self.args, &mut self.tasks);
        }
    }

    /// Holds the queue, or lets it continue, as the condition of the machine and the agent's program require.
    pub(super) fn apply_host_condition(&mut self) {
        self.apply_event(self.args.suspension_event());
    }

    /// Blocks or unblocks the queue, as the credential requires. An execution that was served with the credential, or
    /// an operator, wakes the deferred executions.
    pub(super) fn apply_breaker_state(&mut self) {
        match self.admission.update_credential_gate(&self.args) {
            GateChange::Unchanged => return,
            GateChange::Blocked => self.apply_event(AdmissionEvent::AccountBlocked),
            GateChange::Unblocked { .. } => {
                self.apply_event(AdmissionEvent::AccountUnblocked);
                for (id, deferral) in self.admission.queue().account_deferrals() {
                    self.requeue_deferred(id, deferral);
                }
            }
        }
        self.admission.restart_timeout(&self.args, &mut self.tasks);
    }

    /// Ends the entries whose timeout has expired, and starts the timer for the next one.
    pub(super) fn end_expired_entries(&mut self) {
        for id in self.admission.collect_expired_entries(&self.args) {
            self.end_before_start(id, self.args.expiry_event());
        }
        self.admission.schedule_timeout(&self.args, &mut self.tasks);
    }

    /// Applies a new definition. Running executions keep the old one; queued ones keep their position and start with
    /// the new one.
    pub(super) fn reconfigure(&mut self, definition: AgentDefinition) {
        self.lifecycle.cancel_removal();
        let previous_timeout = self.args.spec.limits.capacity.queue_timeout;
        (self.args.spec, self.args.driver) = (definition.spec, definition.driver);
        let resized = self.admission.reconfigure(previous_timeout, &self.args);
        self.apply_host_condition(); // The program may have been installed or removed since.
        self.apply_event(resized);
        self.apply_breaker_state();
        self.args.services.report_budget_usage(&self.args.spec);
        self.admission.restart_timeout(&self.args, &mut self.tasks);
    }
}

impl AgentArgs {
    /// Returns the event that holds the queue or lets it continue.
    fn suspension_event(&self) -> AdmissionEvent {
        match self.is_queue_suspended() {
            true => AdmissionEvent::Suspended,
            false => AdmissionEvent::Unsuspended,
        }
    }

    /// Returns the end of an entry whose queue timeout has expired.
    fn expiry_event(&self) -> ExecutionEvent {
        match self.spec.unavailable_failure() {
            // The caller can act on the missing program, not on the length of the queue.
            Some(failure) => ExecutionEvent::StartRefused { failure },
            None => ExecutionEvent::QueueExpired,
        }
    }
}

/// Waits for the end of a deferral by a monotonic clock, or by the wall clock if that jumped ahead.
fn wait_for_deferral_end(
    clock: Arc<dyn Clock>,
    id: ExecutionId,
    deferral: Deferral,
) -> impl Future<Output = AgentMsg> + Send + 'static {
    let wait = (deferral.until - clock.now()).to_std().unwrap_or_default();
    let delay = resume_jitter(id, wait);
    let deadline = Instant::now().checked_add(wait + delay).unwrap_or_else(Instant::now);
    let until = deferral.until + TimeDelta::from_std(delay).unwrap_or_default();
    async move {
        while Instant::now() < deadline && clock.now() < until {
            sleep(deadline.saturating_duration_since(Instant::now()).min(CLOCK_CHECK_INTERVAL))
                .await;
        }
        AgentMsg::DeferralOver(id, deferral)
    }
}
