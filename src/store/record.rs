//! Appending text and facts: facts only the holder of the present claim may, until the end.

use algonius_actors::model::event::Fact;
use algonius_actors::model::execution::{Fence, State};
use algonius_actors::model::id::ExecutionId;
use algonius_actors::ports::ledger::Lines;
use async_trait::async_trait;

use super::head::Head;
use super::recent::Touched;
use super::sql::{self, Connection};
use super::text;
use super::writer::Change;

/// Text and facts of an execution, in their order.
pub(super) struct Written {
    /// The execution.
    pub(super) id: ExecutionId,
    /// The generation under which they happened.
    pub(super) fence: Fence,
    /// What is written.
    pub(super) lines: Lines,
}

#[async_trait]
impl Change for Written {
    type Answer = bool;

    fn touches(&self) -> Touched {
        Touched::One(self.id)
    }

    async fn make(&self, connection: &mut Connection) -> sql::Result<bool> {
        let Some(mut head) = Head::load(connection, self.id).await? else {
            return Ok(false);
        };
        text::insert_all(connection, self.id, &self.lines.chunks).await?;
        if head.fence != self.fence || (head.outcome.is_some() && !self.are_cleanup()) {
            return Ok(false);
        }
        if self.lines.facts.is_empty() {
            return Ok(true);
        }
        head.append_all(connection, &self.lines.facts).await?;
        head.save(connection).await?;
        Ok(true)
    }
}

impl Written {
    /// Whether they are moves into the clean-up or out of it, which come after the end.
    fn are_cleanup(&self) -> bool {
        self.lines.facts.iter().all(|(_, fact)| match fact {
            Fact::Moved(moved) => [moved.from, moved.to].contains(&State::Cleanup),
            Fact::Spawned { .. }
            | Fact::AttemptFailed(_)
            | Fact::Parked(_)
            | Fact::Said { .. }
            | Fact::Artifact { .. }
            | Fact::Used { .. }
            | Fact::Charged { .. }
            | Fact::Stepped { .. }
            | Fact::Stopped { .. }
            | Fact::Heartbeat(_)
            | Fact::Spent(_)
            | Fact::Session { .. }
            | Fact::Truncated { .. }
            | Fact::Expiring { .. }
            | Fact::Discontinued { .. }
            | Fact::Checked { .. }
            | Fact::Warned { .. } => false,
        })
    }
}
