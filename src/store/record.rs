//! Appending facts: only the holder of the present claim may, until the end.

use algonius_actors::model::event::Fact;
use algonius_actors::model::execution::{Fence, State};
use algonius_actors::model::id::ExecutionId;
use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::head::Head;
use super::sql::{self, Connection};
use super::writer::Change;

/// Facts of an execution, in their order.
pub(super) struct Facts {
    /// The execution.
    pub(super) id: ExecutionId,
    /// The generation under which they happened.
    pub(super) fence: Fence,
    /// What happened, and when.
    pub(super) facts: Vec<(DateTime<Utc>, Fact)>,
}

#[async_trait]
impl Change for Facts {
    type Answer = bool;

    async fn make(&self, connection: &mut Connection) -> sql::Result<bool> {
        let Some(mut head) = Head::load(connection, self.id).await? else {
            return Ok(false);
        };
        if head.fence != self.fence || (head.outcome.is_some() && !self.are_cleanup()) {
            return Ok(false);
        }
        for (at, fact) in &self.facts {
            head.append(connection, *at, fact.clone()).await?;
        }
        head.save(connection).await?;
        Ok(true)
    }
}

impl Facts {
    /// Whether they are moves into the clean-up or out of it, which come after the end.
    fn are_cleanup(&self) -> bool {
        self.facts.iter().all(|(_, fact)| match fact {
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
