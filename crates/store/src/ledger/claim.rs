//! Claim of the resources for an attempt: the claimer's knowledge must still be true, and a slot and the workspace
//! must be free.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use algonius_actors::model::agent::queue::QueueReason;
use algonius_actors::model::agent::workspace::Workspace;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::execution::{Fence, State};
use algonius_actors::ports::ledger::{Claim, ClaimOrder};
use async_trait::async_trait;

use super::execution_row::Head;
use super::interactions;
use crate::engine::read_cache::Invalidation;
use crate::engine::sql::{self, DatabaseConnection};
use crate::engine::writer::WriteCommand;

const OTHERS: &str = "
    SELECT count(*) FROM executions
    WHERE agent = $1 AND id <> $2 AND outcome IS NULL AND state IN ('starting', 'running')";

const WORKSPACES: &str = "
    SELECT workspace FROM executions
    WHERE id <> $1 AND workspace IS NOT NULL AND outcome IS NULL
        AND state IN ('starting', 'running')";

const EARLIER: &str = "
    SELECT EXISTS (
        SELECT 1 FROM executions other
        JOIN executions mine ON mine.id = $1 AND other.context = mine.context
            AND other.agent = mine.agent AND other.owner = mine.owner
        WHERE other.id <> $1 AND other.outcome IS NULL AND (
            other.state IN ('starting', 'running')
            OR (other.id < $1 AND (other.state IN ('idle', 'failed') OR other.answered))
        )
    )";

#[async_trait]
impl WriteCommand for ClaimOrder {
    type Answer = Claim;

    fn touches(&self) -> Invalidation {
        Invalidation::One(self.id)
    }

    async fn make(&self, connection: &mut DatabaseConnection) -> sql::Result<Claim> {
        let Some(mut head) = Head::load(connection, self.id).await? else {
            return Ok(Claim::Gone);
        };
        if !may_start(self, &head) {
            return Ok(Claim::Gone);
        }
        // Checked in the transaction that also grants the claim: two claims of one agent cannot both see the last
        // free slot.
        if !has_slot(self, connection).await? {
            return Ok(Claim::Busy(QueueReason::AgentBusy));
        }
        if self.in_turn && has_earlier(self, connection).await? {
            return Ok(Claim::Busy(QueueReason::ConversationBusy));
        }
        if !has_workspace(self, connection).await? {
            return Ok(Claim::Busy(QueueReason::WorkspaceBusy));
        }
        // From now on reports of every earlier attempt are outdated, also those of an actor that has crashed
        // meanwhile.
        let moved = &self.moved;
        interactions::end_earlier(connection, &mut head, moved.attempt_id, moved.at).await?;
        head.fence = Fence(head.fence.0 + 1);
        // The start of the first attempt stays: the running time of an execution contains its retries.
        head.started_at = head.started_at.or(Some(self.moved.at));
        // The process of the previous attempt does not belong to this attempt.
        head.pid = None;
        head.answered = false;
        head.workspace = self.workspace.as_ref().map(bytes);
        head.append(connection, self.moved.at, EventKind::StateChanged(self.moved.clone())).await?;
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

async fn has_slot(order: &ClaimOrder, connection: &mut DatabaseConnection) -> sql::Result<bool> {
    let Some(limit) = order.limit else {
        return Ok(true);
    };
    let others: i64 = sql::query(OTHERS)
        .bind(order.agent.as_str())
        .bind(order.id.0)
        .fetch_scalar(connection)
        .await?;
    Ok(others < i64::from(limit))
}

/// Returns true if another message of the conversation runs, or precedes this message and still has to run.
async fn has_earlier(order: &ClaimOrder, connection: &mut DatabaseConnection) -> sql::Result<bool> {
    sql::query(EARLIER).bind(order.id.0).fetch_scalar(connection).await
}

/// Returns true if the workspace is free. Few executions write at one time, so each is checked: paths are compared
/// by their components, in this one place.
async fn has_workspace(
    order: &ClaimOrder,
    connection: &mut DatabaseConnection,
) -> sql::Result<bool> {
    let Some(wanted) = &order.workspace else {
        return Ok(true);
    };
    for row in sql::query(WORKSPACES).bind(order.id.0).fetch_all(connection).await? {
        if workspace(row.at(0)?).overlaps(wanted) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn bytes(workspace: &Workspace) -> Vec<u8> {
    workspace.path().as_os_str().as_bytes().to_vec()
}

fn workspace(bytes: Vec<u8>) -> Workspace {
    Workspace::new(OsString::from_vec(bytes))
}
