//! Writer of one execution's records: writes them to the ledger in order, and reports completion.
//!
//! The writer is a separate task, so that no actor waits for a disk. It retries while its actor lives, because the
//! records must be written: a full store is retried until it accepts them. Once the actor has stopped, a successor
//! recovers the execution from the ledger, and the first failure ends the writer.
//!
//! The start of the work is written with the next record, if that follows soon: for followers, and for recovery after a
//! crash, a running execution equals a starting one.

mod interaction_op;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use ractor::ActorRef;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tracing::{Instrument, Span};

use super::{ClaimBlocked, ClaimGranted, ExecutionMsg};
use crate::decide::execution::ExecutionEvent;
use crate::driver::Driver;
use crate::model::agent::AgentSpec;
use crate::model::agent::queue::QueueReason;
use crate::model::execution::event::EventKind;
use crate::model::execution::progress::Progress;
use crate::model::execution::request::Request;
use crate::model::execution::{ExecutionState, Fence};
use crate::model::id::{AgentId, ExecutionId};
use crate::ports::interaction_store::InteractionStore;
use crate::ports::ledger::{
    ClaimCommand, ClaimResult, Ledger, LedgerError, Settlement, WriteBatch,
};
use crate::services::Services;
use crate::services::active_writers::WriterRegistration;
use crate::services::panic_guard::run_with_panic_guard;
use crate::services::workspace_queue::WorkspaceQueue;

pub(super) use self::interaction_op::InteractionOp;

/// Pause before a failed write is retried.
const WRITE_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Longest time for which a start record waits for the end.
const MAX_START_RECORD_DELAY: Duration = Duration::from_millis(50);

/// Write operation.
pub(super) enum WriteOp {
    /// Claim the resources of an attempt.
    Claim(Box<ClaimRequest>),
    /// Append text and events.
    Record(Fence, WriteBatch),
    /// Append them with the next operation, or after a short time, because they are not urgent.
    RecordLater(Fence, WriteBatch),
    /// Settle the execution.
    Settle(Settlement),
    /// Record something about an interaction.
    Interaction(InteractionOp),
    /// Notify the sender's receiver: all earlier operations are written.
    NotifyWritten(oneshot::Sender<()>),
    /// No further operation follows.
    Finish,
}

impl WriteOp {
    /// Creates the operation for a batch: immediate, unless the batch only reports that the work runs.
    pub(super) fn for_batch(fence: Fence, batch: WriteBatch) -> Self {
        let is_start = |event: &EventKind| match event {
            EventKind::ProcessStarted { .. } => true,
            EventKind::StateChanged(state_change) => state_change.to == ExecutionState::Running,
            _ => false,
        };
        if batch.chunks.is_empty() && batch.events.iter().all(|(_, event)| is_start(event)) {
            Self::RecordLater(fence, batch)
        } else {
            Self::Record(fence, batch)
        }
    }
}

/// Claim of an attempt.
pub(super) struct ClaimRequest {
    /// Command without the workspace.
    pub(super) command: ClaimCommand,
    /// Driver that determines the workspace.
    pub(super) driver: Arc<dyn Driver>,
    /// Definition of the agent.
    pub(super) spec: Arc<AgentSpec>,
    /// Raw request.
    pub(super) request: Arc<Request>,
    /// Queue of the executions that wait for a workspace.
    pub(super) workspace_queue: WorkspaceQueue,
}

/// Writer of one execution.
pub(super) struct ExecutionWriter {
    id: ExecutionId,
    ledger: Arc<dyn Ledger>,
    interactions: Arc<dyn InteractionStore>,
    actor: ActorRef<ExecutionMsg>,
    progress: watch::Sender<Progress>,
    operations: mpsc::UnboundedReceiver<WriteOp>,
    /// Operation that arrived while a start record waited, and could not be merged with it.
    unmerged_op: Option<WriteOp>,
    /// Registration as an active writer, held only for its destructor: successors of the actor wait for it.
    _registration: WriterRegistration,
}

impl ExecutionWriter {
    /// Starts the writer. It ends when the execution's actor has stopped.
    pub(super) fn start(
        id: ExecutionId,
        agent: &AgentId,
        services: &Services,
        actor: ActorRef<ExecutionMsg>,
        progress: watch::Sender<Progress>,
    ) -> mpsc::UnboundedSender<WriteOp> {
        let (sender, operations) = mpsc::unbounded_channel();
        let (ledger, registration) =
            (Arc::clone(&services.ledger), services.active_writers.register(agent.clone(), id));
        let actor_on_panic = actor.clone();
        let interactions = Arc::clone(&services.stores.interactions);
        let writer = Self {
            id,
            ledger,
            interactions,
            actor,
            progress,
            operations,
            unmerged_op: None,
            _registration: registration,
        };
        let writing = writer.run().instrument(Span::current());
        // Not a task of the actor: records that were accepted are written also after it has stopped.
        tokio::spawn(run_with_panic_guard(writing, move || {
            _ = actor_on_panic.cast(ExecutionMsg::BackgroundFuturePanicked);
        }));
        sender
    }

    async fn run(mut self) {
        while let Some(write_op) = self.next_operation().await {
            let is_write = !matches!(write_op, WriteOp::NotifyWritten(_));
            if self.write(write_op).await.is_break() {
                return;
            }
            if !is_write {
                continue;
            }
            // After the commit, so that a follower that wakes finds the records in the ledger.
            self.progress.send_modify(Progress::advance_revision);
        }
    }

    /// Returns the next operation. A start record waits a moment for an operation to merge with.
    async fn next_operation(&mut self) -> Option<WriteOp> {
        let write_op = match self.unmerged_op.take() {
            Some(write_op) => write_op,
            None => self.operations.recv().await?,
        };
        let WriteOp::RecordLater(fence, batch) = write_op else { return Some(write_op) };
        // The records of a short run are mostly less than two milliseconds apart (ADR 35); one commit stores both.
        let next_op = timeout(MAX_START_RECORD_DELAY, self.operations.recv()).await.ok().flatten();
        let (write_op, unmerged_op) = merge_start_record(fence, batch, next_op);
        self.unmerged_op = unmerged_op;
        Some(write_op)
    }

    async fn write(&self, write_op: WriteOp) -> ControlFlow<()> {
        match write_op {
            WriteOp::Claim(_) if self.operations.is_closed() => {} // The actor has stopped, so nobody does the work.
            WriteOp::Claim(claim_request) => self.claim(*claim_request).await,
            WriteOp::Record(fence, batch) | WriteOp::RecordLater(fence, batch) => {
                while let Err(error) = self.ledger.append_batch(self.id, fence, batch.clone()).await
                {
                    self.pause_before_retry(&error).await?;
                }
            }
            WriteOp::Settle(settlement) => {
                while let Err(error) = self.ledger.settle(settlement.clone()).await {
                    self.pause_before_retry(&error).await?;
                }
                self.send(ExecutionMsg::Event(ExecutionEvent::Settled));
            }
            WriteOp::Interaction(operation) => loop {
                match operation.clone().perform(&self.interactions).await {
                    Ok(msg) => {
                        msg.into_iter().for_each(|msg| self.send(msg));
                        break;
                    }
                    Err(error) => self.pause_before_retry(&error).await?,
                }
            },
            WriteOp::NotifyWritten(sender) => _ = sender.send(()), // The receiver may not wait any longer.
            WriteOp::Finish => self.send(ExecutionMsg::RecordsWritten),
        }
        ControlFlow::Continue(())
    }

    async fn claim(&self, claim_request: ClaimRequest) {
        let ClaimRequest { mut command, driver, spec, request, workspace_queue: queue } =
            claim_request;
        // Here and not in the actor: the driver may read the file system.
        let workspace = driver.workspace(&spec, &request).await;
        let (id, attempt_id) = (self.id, command.state_change.attempt_id);
        command.workspace.clone_from(&workspace);
        // The ledger knows who holds a folder, but not who came first.
        let is_first =
            workspace.as_ref().is_none_or(|workspace| queue.position(id, workspace) == 1);
        let claim = if is_first {
            self.ledger.claim(command).await
        } else {
            Ok(ClaimResult::Busy(QueueReason::WorkspaceBusy)) // Earlier executions claim first.
        };
        self.send(match claim {
            Ok(ClaimResult::Granted(fence)) => {
                ExecutionMsg::ClaimGranted(ClaimGranted { attempt_id, fence, workspace })
            }
            Ok(ClaimResult::Busy(reason)) => {
                ExecutionMsg::ClaimBlocked(ClaimBlocked { attempt_id, reason, workspace })
            }
            Ok(ClaimResult::Superseded) => ExecutionMsg::Event(ExecutionEvent::SettledElsewhere),
            Err(error) => {
                tracing::error!(execution = %self.id, %error, "claim failed");
                ExecutionMsg::Event(ExecutionEvent::ClaimFailed { attempt_id })
            }
        });
    }

    /// Pauses before the next try; breaks if the actor has stopped.
    async fn pause_before_retry(&self, error: &LedgerError) -> ControlFlow<()> {
        tracing::error!(execution = %self.id, %error, "write failed, retrying");
        tokio::time::sleep(WRITE_RETRY_PAUSE).await;
        if self.operations.is_closed() {
            tracing::error!(execution = %self.id, "write abandoned: its actor has stopped");
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn send(&self, msg: ExecutionMsg) {
        _ = self.actor.cast(msg); // A stopped actor needs no message.
    }
}

/// Merges a start record with the next operation, if both belong to one claim; otherwise returns both.
fn merge_start_record(
    fence: Fence,
    mut batch: WriteBatch,
    next_op: Option<WriteOp>,
) -> (WriteOp, Option<WriteOp>) {
    match next_op {
        Some(
            WriteOp::Record(next_fence, next_batch) | WriteOp::RecordLater(next_fence, next_batch),
        ) if next_fence == fence => {
            batch.extend(next_batch);
            (WriteOp::Record(fence, batch), None)
        }
        Some(WriteOp::Settle(settlement)) if settlement.fence == fence => {
            batch.extend(settlement.batch);
            (WriteOp::Settle(Settlement { batch, ..settlement }), None)
        }
        next_op => (WriteOp::Record(fence, batch), next_op),
    }
}
