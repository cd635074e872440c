//! Appends of text and events: until the end, only the holder of the present claim may append events.

use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::execution::{ExecutionState, Fence};
use algonius_actors::model::id::ExecutionId;
use algonius_actors::ports::ledger::WriteBatch;
use async_trait::async_trait;

use super::execution_row::ExecutionRow;
use super::text_chunks;
use crate::engine::read_cache::Invalidation;
use crate::engine::sql::{self, DatabaseConnection};
use crate::engine::writer::WriteCommand;

/// Text and events of an execution, in their order.
pub(crate) struct AppendBatch {
    /// Id of the execution.
    pub(crate) id: ExecutionId,
    /// Generation of the claim under which they were created.
    pub(crate) fence: Fence,
    /// Text and events to append.
    pub(crate) batch: WriteBatch,
}

#[async_trait]
impl WriteCommand for AppendBatch {
    type WriteOutput = bool;

    fn invalidation(&self) -> Invalidation {
        Invalidation::One(self.id)
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<bool> {
        let Some(mut execution_row) = ExecutionRow::load(connection, self.id).await? else {
            return Ok(false);
        };
        // Text needs no valid fence: it belongs to its attempt, also if a later one has been claimed.
        text_chunks::insert_all(connection, self.id, &self.batch.chunks).await?;
        if execution_row.fence != self.fence
            || (execution_row.outcome.is_some() && !self.is_cleanup_only())
        {
            return Ok(false);
        }
        // Without events the row does not change, and one page less is written.
        if self.batch.events.is_empty() {
            return Ok(true);
        }
        execution_row.append_events(connection, &self.batch.events).await?;
        execution_row.save(connection).await?;
        Ok(true)
    }
}

impl AppendBatch {
    /// Returns true if all events are state changes to or from the clean-up, which follow the end.
    fn is_cleanup_only(&self) -> bool {
        self.batch.events.iter().all(|(_, event)| match event {
            EventKind::StateChanged(change) => {
                [change.from, change.to].contains(&ExecutionState::Cleanup)
            }
            EventKind::ProcessStarted { .. }
            | EventKind::AttemptFailed(_)
            | EventKind::Deferred(_)
            | EventKind::Message { .. }
            | EventKind::Artifact { .. }
            | EventKind::UsageReported { .. }
            | EventKind::BudgetCharged { .. }
            | EventKind::Step { .. }
            | EventKind::Stopped { .. }
            | EventKind::Heartbeat(_)
            | EventKind::ResourceUsage(_)
            | EventKind::Session { .. }
            | EventKind::OutputTruncated { .. }
            | EventKind::DeadlineApproaching { .. }
            | EventKind::SessionLost { .. }
            | EventKind::CheckOutput { .. }
            | EventKind::MalformedLine { .. }
            | EventKind::InteractionOpened { .. }
            | EventKind::InteractionClosed { .. }
            | EventKind::PermissionDecided { .. }
            | EventKind::Planned { .. }
            | EventKind::Hop { .. }
            | EventKind::StepsPlanned { .. }
            | EventKind::RunStep { .. }
            | EventKind::Warning { .. } => false,
        })
    }
}
