//! Context in which an attempt writes: its ids, its ledger, and the records that wait for the next write.

use std::sync::Arc;

use algonius_redact::Redactor;
use tokio::sync::watch;

use super::{BudgetMeter, Liveness, ReplayFilter, WriteBuffer};
use crate::model::execution::event::EventKind;
use crate::model::execution::progress::Progress;
use crate::model::execution::{AttemptId, Fence};
use crate::model::id::ExecutionId;
use crate::ports::clock::Clock;
use crate::ports::ledger::{Ledger, LedgerError, WriteBatch};

/// Context in which an attempt writes.
#[derive(Clone)]
pub struct AttemptContext {
    /// Id of the execution.
    pub execution_id: ExecutionId,
    /// Id of the attempt.
    pub attempt_id: AttemptId,
    /// Generation of the claim.
    pub fence: Fence,
    /// Ledger of executions.
    pub ledger: Arc<dyn Ledger>,
    /// Wall clock.
    pub clock: Arc<dyn Clock>,
    /// Redactor of secrets.
    pub redactor: Arc<Redactor>,
    /// Settings of the agent for its output.
    pub output_settings: OutputSettings,
    /// Sender of the progress.
    pub progress: watch::Sender<Progress>,
    /// Time of the latest output.
    pub liveness: Liveness,
    /// Events that an earlier process recorded about the attempt, if it is replayed.
    pub replay_filter: ReplayFilter,
    /// Meter of used budget amounts.
    pub budget_meter: BudgetMeter,
    /// Records that wait for the next write.
    pub write_buffer: WriteBuffer,
}

/// Settings of an agent for its output.
#[derive(Debug, Clone, Copy)]
pub struct OutputSettings {
    /// Number of bytes that are kept of each channel.
    pub max_channel_bytes: usize,
    /// True if the owner may receive the raw text of the answer.
    pub publishes_raw_answer: bool,
}

impl AttemptContext {
    /// Records an event.
    pub(super) async fn record_event(&self, event: EventKind) -> Result<(), LedgerError> {
        self.record_event_pair(event, None).await.map(|_| ())
    }

    /// Records an event together with a second one in one commit. Returns true if the event is new and the fence is
    /// valid.
    pub(super) async fn record_event_pair(
        &self,
        event: EventKind,
        second_event: Option<EventKind>,
    ) -> Result<bool, LedgerError> {
        let Some(event) = self.replay_filter.filter(event) else { return Ok(false) };
        let now = self.clock.now();
        let events =
            [Some(event), second_event].into_iter().flatten().map(|event| (now, event)).collect();
        self.write_with_pending(WriteBatch { chunks: Vec::new(), events }).await
    }

    /// Writes the pending records, and then these. Returns true if the fence is valid. If the ledger fails, the pending
    /// records stay pending.
    pub(super) async fn write_with_pending(&self, batch: WriteBatch) -> Result<bool, LedgerError> {
        // The pending records precede these in time, and the ledger numbers events in the order in which they arrive.
        let pending = self.write_buffer.take();
        let mut combined = pending.clone();
        combined.extend(batch);
        let result = self.ledger.append_batch(self.execution_id, self.fence, combined).await;
        // Not lost on a failure: the next write, or the end of the attempt, stores them.
        let is_valid = result.inspect_err(|_| self.write_buffer.add(pending))?;
        self.liveness.record_activity();
        self.progress.send_modify(Progress::advance_revision);
        Ok(is_valid)
    }
}
