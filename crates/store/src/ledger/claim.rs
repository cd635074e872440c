//! Claim of the resources for an attempt: the claimer's knowledge must still be true, and a slot and the workspace
//! must be free.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use algonius_actors::model::agent::queue::QueueReason;
use algonius_actors::model::agent::workspace::Workspace;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::execution::{ExecutionState, Fence};
use algonius_actors::ports::ledger::{ClaimCommand, ClaimResult};
use async_trait::async_trait;

use super::execution_row::ExecutionRow;
use super::interactions;
use crate::engine::read_cache::Invalidation;
use crate::engine::sql::{self, DatabaseConnection};
use crate::engine::writer::WriteCommand;

const COUNT_RUNNING: &str = "
    SELECT count(*) FROM executions
    WHERE agent = $1 AND id <> $2 AND outcome IS NULL AND state IN ('starting', 'running')";

const SELECT_WORKSPACES: &str = "
    SELECT workspace FROM executions
    WHERE id <> $1 AND workspace IS NOT NULL AND outcome IS NULL
        AND state IN ('starting', 'running')";

const EXISTS_BLOCKING_EXECUTION: &str = "
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
impl WriteCommand for ClaimCommand {
    type WriteOutput = ClaimResult;

    fn invalidation(&self) -> Invalidation {
        Invalidation::One(self.id)
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<ClaimResult> {
        let Some(mut execution_row) = ExecutionRow::load(connection, self.id).await? else {
            return Ok(ClaimResult::Superseded);
        };
        if !is_claim_current(self, &execution_row) {
            return Ok(ClaimResult::Superseded);
        }
        // Checked in the transaction that also grants the claim: two claims of one agent cannot both see the last
        // free slot.
        if !has_free_slot(self, connection).await? {
            return Ok(ClaimResult::Busy(QueueReason::AgentBusy));
        }
        if self.runs_turns_in_order && is_conversation_busy(self, connection).await? {
            return Ok(ClaimResult::Busy(QueueReason::ConversationBusy));
        }
        if !is_workspace_free(self, connection).await? {
            return Ok(ClaimResult::Busy(QueueReason::WorkspaceBusy));
        }
        // From now on reports of every earlier attempt are outdated, also those of an actor that has crashed
        // meanwhile.
        let change = &self.state_change;
        interactions::close_for_earlier_attempts(
            connection,
            &mut execution_row,
            change.attempt_id,
            change.at,
        )
        .await?;
        execution_row.fence = Fence(execution_row.fence.0 + 1);
        // The start of the first attempt stays: the running time of an execution contains its retries.
        execution_row.started_at = execution_row.started_at.or(Some(self.state_change.at));
        // The process of the previous attempt does not belong to this attempt.
        execution_row.pid = None;
        execution_row.has_pending_turn = false;
        execution_row.workspace = self.workspace.as_ref().map(path_bytes);
        execution_row
            .append_event(
                connection,
                self.state_change.at,
                EventKind::StateChanged(self.state_change.clone()),
            )
            .await?;
        execution_row.save(connection).await?;
        Ok(ClaimResult::Granted(execution_row.fence))
    }
}

fn is_claim_current(command: &ClaimCommand, execution_row: &ExecutionRow) -> bool {
    execution_row.outcome.is_none()
        && execution_row.fence == command.fence
        && execution_row.agent == command.agent.as_str()
        && command.state_change.to == ExecutionState::Starting
        && execution_row.state.may_become(ExecutionState::Starting)
}

async fn has_free_slot(
    command: &ClaimCommand,
    connection: &mut DatabaseConnection,
) -> sql::Result<bool> {
    let Some(limit) = command.max_running else {
        return Ok(true);
    };
    let running_count: i64 = sql::statement(COUNT_RUNNING)
        .bind(command.agent.as_str())
        .bind(command.id.0)
        .fetch_scalar(connection)
        .await?;
    Ok(running_count < i64::from(limit))
}

/// Returns true if another message of the conversation runs, or precedes this message and still has to run.
async fn is_conversation_busy(
    command: &ClaimCommand,
    connection: &mut DatabaseConnection,
) -> sql::Result<bool> {
    sql::statement(EXISTS_BLOCKING_EXECUTION).bind(command.id.0).fetch_scalar(connection).await
}

/// Returns true if the workspace is free. Few executions write at one time, so each is checked: paths are compared
/// by their components, in this one place.
async fn is_workspace_free(
    command: &ClaimCommand,
    connection: &mut DatabaseConnection,
) -> sql::Result<bool> {
    let Some(requested) = &command.workspace else {
        return Ok(true);
    };
    for row in sql::statement(SELECT_WORKSPACES).bind(command.id.0).fetch_all(connection).await? {
        if workspace_from_bytes(row.column_at(0)?).overlaps(requested) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn path_bytes(workspace: &Workspace) -> Vec<u8> {
    workspace.path().as_os_str().as_bytes().to_vec()
}

fn workspace_from_bytes(bytes: Vec<u8>) -> Workspace {
    Workspace::new(OsString::from_vec(bytes))
}
