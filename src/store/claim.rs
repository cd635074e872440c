//! Taking what an attempt needs: what the claimer knows must still be true, and a slot and the
//! workspace must be free.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use algonius_actors::model::event::Fact;
use algonius_actors::model::execution::{Fence, State};
use algonius_actors::model::queue::Reason;
use algonius_actors::model::workspace::Workspace;
use algonius_actors::ports::ledger::{Claim, ClaimOrder};
use async_trait::async_trait;

use super::head::Head;
use super::recent::Touched;
use super::sql::{self, Connection};
use super::writer::Change;

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
impl Change for ClaimOrder {
    type Answer = Claim;

    fn touches(&self) -> Touched {
        Touched::One(self.id)
    }

    async fn make(&self, connection: &mut Connection) -> sql::Result<Claim> {
        let Some(mut head) = Head::load(connection, self.id).await? else {
            return Ok(Claim::Gone);
        };
        if !may_start(self, &head) {
            return Ok(Claim::Gone);
        }
        if !has_slot(self, connection).await? {
            return Ok(Claim::Busy(Reason::AgentBusy));
        }
        if self.in_turn && has_earlier(self, connection).await? {
            return Ok(Claim::Busy(Reason::ConversationBusy));
        }
        if !has_workspace(self, connection).await? {
            return Ok(Claim::Busy(Reason::WorkspaceBusy));
        }
        head.fence = Fence(head.fence.0 + 1);
        head.started_at = head.started_at.or(Some(self.moved.at));
        // The process of the attempt before is not this attempt's.
        head.pid = None;
        head.answered = false;
        head.workspace = self.workspace.as_ref().map(bytes);
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

async fn has_slot(order: &ClaimOrder, connection: &mut Connection) -> sql::Result<bool> {
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

/// Whether another message of its conversation is at work, or came before it and is to be.
async fn has_earlier(order: &ClaimOrder, connection: &mut Connection) -> sql::Result<bool> {
    sql::query(EARLIER).bind(order.id.0).fetch_scalar(connection).await
}

/// Few executions change anything at one time, so each is looked at: paths are compared by their
/// parts, and in one place only.
async fn has_workspace(order: &ClaimOrder, connection: &mut Connection) -> sql::Result<bool> {
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
