//! Taking a slot for an attempt: what the claimer knows must still be true.

use algonius_actors::model::event::Fact;
use algonius_actors::model::execution::{Fence, State};
use algonius_actors::ports::ledger::{Claim, ClaimOrder};
use async_trait::async_trait;
use sqlx::SqliteConnection;

use super::head::Head;
use super::writer::Change;

const OTHERS: &str = "
    SELECT count(*) FROM executions
    WHERE agent = $1 AND id <> $2 AND outcome IS NULL AND state IN ('starting', 'running')";

#[async_trait]
impl Change for ClaimOrder {
    type Answer = Claim;

    async fn make(&self, connection: &mut SqliteConnection) -> sqlx::Result<Claim> {
        let Some(mut head) = Head::load(connection, self.id).await? else {
            return Ok(Claim::Gone);
        };
        if !may_start(self, &head) {
            return Ok(Claim::Gone);
        }
        if !has_slot(self, connection).await? {
            return Ok(Claim::Busy);
        }
        head.fence = Fence(head.fence.0 + 1);
        head.started_at = head.started_at.or(Some(self.moved.at));
        // The process of the attempt before is not this attempt's.
        head.pid = None;
        head.answered = false;
        head.append(connection, self.moved.at, Fact::Moved(self.moved.clone())).await?;
        head.save(connection).await?;
        Ok(Claim::Granted(head.fence))
    }
}

fn may_start(order: &ClaimOrder, head: &Head) -> bool {
    head.outcome.is_none()
        && head.fence == order.fence
        && head.agent == order.agent.as_str()
        && order.moved.to == State::Starting
        && head.state.may_become(State::Starting)
}

async fn has_slot(order: &ClaimOrder, connection: &mut SqliteConnection) -> sqlx::Result<bool> {
    let Some(limit) = order.limit else {
        return Ok(true);
    };
    let others: i64 = sqlx::query_scalar(OTHERS)
        .bind(order.agent.as_str())
        .bind(order.id.0)
        .fetch_one(connection)
        .await?;
    Ok(others < i64::from(limit))
}
