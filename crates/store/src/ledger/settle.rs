//! End of an execution, which happens only once.

use algonius_actors::ports::interaction_store::reports::{
    interaction_end_at_settlement, last_transition_index,
};
use algonius_actors::ports::ledger::Settlement;
use async_trait::async_trait;

use super::execution_row::ExecutionRow;
use super::{interactions, sealed_inputs, text_chunks};
use crate::engine::read_cache::Invalidation;
use crate::engine::sql::{self, DatabaseConnection};
use crate::engine::writer::WriteCommand;

#[async_trait]
impl WriteCommand for Settlement {
    type WriteOutput = bool;

    fn invalidation(&self) -> Invalidation {
        Invalidation::One(self.id)
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<bool> {
        let Some(mut execution_row) = ExecutionRow::load(connection, self.id).await? else {
            return Ok(false);
        };
        // Text needs no valid fence, so it is stored even if another settlement came first.
        text_chunks::insert_all(connection, self.id, &self.batch.chunks).await?;
        // An actor and its successor may both settle; the first commit decides, and the second must not add an event.
        if execution_row.outcome.is_some() || execution_row.fence != self.fence {
            return Ok(false);
        }
        let (events_before_end, end_events) =
            self.batch.events.split_at(last_transition_index(&self.batch.events));
        execution_row.append_events(connection, events_before_end).await?;
        interactions::close_all(
            connection,
            &mut execution_row,
            &interaction_end_at_settlement(self.outcome, self.at),
        )
        .await?;
        execution_row.append_events(connection, end_events).await?;
        apply_settlement(self, &mut execution_row)?;
        execution_row.save(connection).await?;
        // In the same commit as the end: no crash may leave a raw input that nobody needs any more.
        if !execution_row.stores_raw_input && !self.keeps_sealed_input {
            sealed_inputs::erase(connection, self.id).await?;
        }
        Ok(true)
    }
}

fn apply_settlement(settlement: &Settlement, execution_row: &mut ExecutionRow) -> sql::Result<()> {
    execution_row.outcome = Some(settlement.outcome);
    execution_row.set_failure(settlement.failure.as_ref())?;
    execution_row.attempt_id = settlement.attempt_id;
    execution_row.exit_code = settlement.exit_code;
    execution_row.ended_at = Some(settlement.at);
    execution_row.pid = None;
    Ok(())
}
