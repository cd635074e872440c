//! Records of an execution on their way to the ledger.

use std::mem;

use chrono::{DateTime, Utc};
use tokio::sync::{mpsc, oneshot};

use super::writer::{ClaimRequest, InteractionOp, WriteOp};
use crate::model::execution::Fence;
use crate::model::execution::event::EventKind;
use crate::model::interaction::{
    Interaction, InteractionEnd, InteractionId, InteractionRequestKey,
};
use crate::model::permission::PermissionDecision;
use crate::ports::ledger::{Settlement, WriteBatch};

/// Writer of the execution, and the records that wait for it.
pub(super) struct Persistence {
    /// Generation of the claim under which records are written.
    fence: Fence,
    /// Records that wait until the present event is handled: one event makes one write.
    pending: WriteBatch,
    writer: mpsc::UnboundedSender<WriteOp>,
}

impl Persistence {
    /// Creates the part without pending records.
    pub(super) fn new(fence: Fence, writer: mpsc::UnboundedSender<WriteOp>) -> Self {
        Self { fence, pending: WriteBatch::default(), writer }
    }

    /// Returns the generation of the claim.
    pub(super) const fn fence(&self) -> Fence {
        self.fence
    }

    /// Writes under a new claim from now on.
    pub(super) const fn set_fence(&mut self, fence: Fence) {
        self.fence = fence;
    }

    /// Adds an event to the pending records.
    pub(super) fn add_event(&mut self, at: DateTime<Utc>, event: EventKind) {
        self.pending.events.push((at, event));
    }

    /// Adds events to the pending records, each with its time.
    pub(super) fn add_events(
        &mut self,
        events: impl IntoIterator<Item = (DateTime<Utc>, EventKind)>,
    ) {
        self.pending.events.extend(events);
    }

    /// Adds a batch to the pending records.
    pub(super) fn add(&mut self, batch: WriteBatch) {
        self.pending.extend(batch);
    }

    /// Sends the pending records to the writer, if there are any.
    pub(super) fn flush(&mut self) {
        if !self.pending.is_empty() {
            let batch = mem::take(&mut self.pending);
            self.send(WriteOp::for_batch(self.fence, batch));
        }
    }

    /// Records an event at once, before the pending records.
    pub(super) fn record_before_pending(&self, at: DateTime<Utc>, event: EventKind) {
        let batch = WriteBatch { chunks: Vec::new(), events: vec![(at, event)] };
        self.send(WriteOp::Record(self.fence, batch));
    }

    /// Records an open interaction, after the pending records.
    pub(super) fn record_interaction(&mut self, interaction: Interaction) {
        self.flush();
        self.send(WriteOp::Interaction(InteractionOp::Open(self.fence, Box::new(interaction))));
    }

    /// Closes an interaction that got no answer.
    pub(super) fn record_unanswered_close(&self, id: InteractionId, end: InteractionEnd) {
        self.send(WriteOp::Interaction(InteractionOp::Close(id, Box::new(end))));
    }

    /// Records the delivery of an answer.
    pub(super) fn record_delivery(&self, id: InteractionId, at: DateTime<Utc>) {
        self.send(WriteOp::Interaction(InteractionOp::RecordDelivery(id, at)));
    }

    /// Records the delivery of an answer that an earlier process of the service wrote.
    pub(super) fn record_earlier_delivery(&self, key: InteractionRequestKey, at: DateTime<Utc>) {
        self.send(WriteOp::Interaction(InteractionOp::RecordEarlierDelivery(key, at)));
    }

    /// Records the verdict of a rule.
    pub(super) fn record_decision(&self, decision: PermissionDecision) {
        self.send(WriteOp::Interaction(InteractionOp::RecordDecision(Box::new(decision))));
    }

    /// Requests the resources of an attempt from the ledger.
    pub(super) fn request_claim(&self, request: ClaimRequest) {
        self.send(WriteOp::Claim(Box::new(request)));
    }

    /// Settles the execution. Its last records are the pending ones, so that the ledger commits both together.
    pub(super) fn settle(&mut self, settlement: Settlement) {
        let mut batch = mem::take(&mut self.pending);
        // The pending records happened before the end, and the ledger numbers them in this order.
        batch.extend(settlement.batch);
        self.send(WriteOp::Settle(Settlement { batch, ..settlement }));
    }

    /// Sends the pending records. The receiver is notified when all records until now are written.
    pub(super) fn notify_when_written(&mut self) -> oneshot::Receiver<()> {
        self.flush();
        let (sender, written_receiver) = oneshot::channel();
        self.send(WriteOp::NotifyWritten(sender));
        written_receiver
    }

    /// Sends the pending records, and requests a message once all records are written.
    pub(super) fn finish(&mut self) {
        self.flush();
        self.send(WriteOp::Finish);
    }

    fn send(&self, operation: WriteOp) {
        _ = self.writer.send(operation); // The writer ends after this actor.
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::execution::event::DeadlineKind;
    use crate::model::execution::{AttemptId, ExecutionState, Outcome, StateChange};
    use crate::model::id::ExecutionId;

    fn persistence() -> (Persistence, mpsc::UnboundedReceiver<WriteOp>) {
        let (sender, operations) = mpsc::unbounded_channel();
        (Persistence::new(Fence(1), sender), operations)
    }

    fn state_change_event(to: ExecutionState) -> EventKind {
        let now = DateTime::UNIX_EPOCH;
        let states = (ExecutionState::Starting, to);
        EventKind::StateChanged(StateChange::new(states, AttemptId::FIRST, now, String::new()))
    }

    fn deadline_warning_event() -> EventKind {
        let (limit, ends_at) = (DeadlineKind::Run, DateTime::UNIX_EPOCH);
        EventKind::DeadlineApproaching { limit, ends_at, message: String::new() }
    }

    #[test]
    fn records_of_one_event_are_one_write_under_the_latest_claim() {
        let (mut persistence, mut operations) = persistence();
        persistence.flush();
        assert!(operations.try_recv().is_err(), "without records nothing is written");
        persistence.add_event(DateTime::UNIX_EPOCH, state_change_event(ExecutionState::Running));
        persistence.add_event(DateTime::UNIX_EPOCH, deadline_warning_event());
        persistence.set_fence(Fence(2));
        persistence.flush();
        persistence.flush();
        let Ok(WriteOp::Record(Fence(2), batch)) = operations.try_recv() else {
            panic!("no record")
        };
        assert_eq!(batch.events.len(), 2);
        assert!(operations.try_recv().is_err(), "the records are written once");
    }

    #[test]
    fn only_a_start_may_wait_for_the_next_write() {
        let (mut persistence, mut operations) = persistence();
        for (event, waits) in [
            (state_change_event(ExecutionState::Running), true),
            (state_change_event(ExecutionState::Failed), false),
        ] {
            persistence.add_event(DateTime::UNIX_EPOCH, event.clone());
            persistence.flush();
            let operation = operations.try_recv().unwrap();
            assert_eq!(matches!(operation, WriteOp::RecordLater(..)), waits, "{event:?}");
        }
    }

    #[test]
    fn the_settlement_includes_the_pending_records() {
        let (mut persistence, mut operations) = persistence();
        persistence.add_event(DateTime::UNIX_EPOCH, state_change_event(ExecutionState::Failed));
        persistence.record_before_pending(DateTime::UNIX_EPOCH, deadline_warning_event());
        persistence.settle(Settlement {
            id: ExecutionId::generate(),
            fence: persistence.fence(),
            attempt_id: AttemptId::FIRST,
            outcome: Outcome::Failed,
            failure: None,
            exit_code: None,
            batch: WriteBatch::default(),
            keeps_sealed_input: false,
            at: DateTime::UNIX_EPOCH,
        });
        persistence.finish();
        let Ok(WriteOp::Record(_, first)) = operations.try_recv() else { panic!("no record") };
        assert_eq!(first.events, [(DateTime::UNIX_EPOCH, deadline_warning_event())]);
        let Ok(WriteOp::Settle(end)) = operations.try_recv() else { panic!("no end") };
        assert_eq!(
            end.batch.events,
            [(DateTime::UNIX_EPOCH, state_change_event(ExecutionState::Failed))]
        );
        assert!(matches!(operations.try_recv(), Ok(WriteOp::Finish)), "the end is the last record");
    }
}
