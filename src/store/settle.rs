//! Ending an execution: once.

use algonius_actors::ports::ledger::Settlement;
use async_trait::async_trait;

use super::head::Head;
use super::recent::Touched;
use super::sql::{self, Connection};
use super::text;
use super::writer::Change;

#[async_trait]
impl Change for Settlement {
    type Answer = bool;

    fn touches(&self) -> Touched {
        Touched::One(self.id)
    }

    async fn make(&self, connection: &mut Connection) -> sql::Result<bool> {
        let Some(mut head) = Head::load(connection, self.id).await? else {
            return Ok(false);
        };
        text::insert_all(connection, self.id, &self.lines.chunks).await?;
        if head.outcome.is_some() || head.fence != self.fence {
            return Ok(false);
        }
        head.append_all(connection, &self.lines.facts).await?;
        end(self, &mut head)?;
        head.save(connection).await?;
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
