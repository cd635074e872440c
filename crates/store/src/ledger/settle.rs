//! End of an execution, which happens only once.

use algonius_actors::ports::interactions::reports::{position_before_end, settled};
use algonius_actors::ports::ledger::Settlement;
use async_trait::async_trait;

use super::execution_row::Head;
use super::{inputs, interactions, output_chunks};
use crate::engine::read_cache::Invalidation;
use crate::engine::sql::{self, DatabaseConnection};
use crate::engine::writer::WriteCommand;

#[async_trait]
impl WriteCommand for Settlement {
    type Answer = bool;

    fn touches(&self) -> Invalidation {
        Invalidation::One(self.id)
    }

    async fn make(&self, connection: &mut DatabaseConnection) -> sql::Result<bool> {
        let Some(mut head) = Head::load(connection, self.id).await? else {
            return Ok(false);
        };
        // Text needs no valid fence, so it is stored even if another settlement came first.
        output_chunks::insert_all(connection, self.id, &self.lines.chunks).await?;
        // An actor and its successor may both settle; the first commit decides, and the second must not add an event.
        if head.outcome.is_some() || head.fence != self.fence {
            return Ok(false);
        }
        let (before, last) = self.lines.facts.split_at(position_before_end(&self.lines.facts));
        head.append_all(connection, before).await?;
        interactions::end_all(connection, &mut head, &settled(self.outcome, self.at)).await?;
        head.append_all(connection, last).await?;
        end(self, &mut head)?;
        head.save(connection).await?;
        // In the same commit as the end: no crash may leave a raw input that nobody needs any more.
        if !head.replayable && !self.keeps_input {
            inputs::erase(connection, self.id).await?;
        }
        Ok(true)
    }
}

fn end(settlement: &Settlement, head: &mut Head) -> sql::Result<()> {
    head.outcome = Some(settlement.outcome);
    head.blame(settlement.failure.as_ref())?;
    head.stamp = settlement.stamp;
    head.exit_code = settlement.exit_code;
    head.ended_at = Some(settlement.at);
    head.pid = None;
    Ok(())
}
