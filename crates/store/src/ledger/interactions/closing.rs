//! Ends of interactions: by an answer, and by the end of the attempt or of the execution that asked.

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::interaction::{Interaction, InteractionEnd};
use algonius_actors::ports::interaction_store::reports::{
    closed_event, lost_interaction_end, permission_decision,
};
use chrono::{DateTime, Utc};

use super::row::{self, StoredInteraction};
use super::{decisions, team_runs};
use crate::engine::row_codec::{Columns, to_json};
use crate::engine::sql::{self, DatabaseConnection, SqlStatement};
use crate::ledger::execution_row::ExecutionRow;

const OPEN_IN_OTHER_ATTEMPTS: &str =
    "execution = $1 AND state = 'open' AND (turn, attempt) <> ($2, $3) ORDER BY id";

const UPDATE_CLOSED: &str = "
    UPDATE interactions SET state = $2, closed = $3, sealed = $4 WHERE id = $1 AND state = 'open'";

/// The literal condition selects the index of sealed rows, which is empty nearly always.
const ERASE_ANSWERS: &str = "
    UPDATE interactions SET sealed = NULL
    WHERE execution = $1 AND sealed IS NOT NULL AND (turn, attempt) <> ($2, $3)";

/// Attempt that does not exist.
const NO_ATTEMPT: AttemptId = AttemptId { turn: 0, attempt: 0 };

/// Closes all open interactions of an execution that settles, and erases the answers that were never delivered.
pub(crate) async fn close_all(
    connection: &mut DatabaseConnection,
    execution_row: &mut ExecutionRow,
    end: &InteractionEnd,
) -> sql::Result<()> {
    close_except_attempt(connection, execution_row, NO_ATTEMPT, end).await
}

/// Closes the open interactions of earlier attempts than the next one, and erases their answers that were never
/// delivered: their processes have ended.
pub(crate) async fn close_for_earlier_attempts(
    connection: &mut DatabaseConnection,
    execution_row: &mut ExecutionRow,
    next: AttemptId,
    at: DateTime<Utc>,
) -> sql::Result<()> {
    close_except_attempt(connection, execution_row, next, &lost_interaction_end(at)).await
}

async fn close_except_attempt(
    connection: &mut DatabaseConnection,
    execution_row: &mut ExecutionRow,
    excluded_attempt: AttemptId,
    end: &InteractionEnd,
) -> sql::Result<()> {
    if execution_row.has_open_interactions() {
        for interaction in load_open(connection, execution_row.id(), excluded_attempt).await? {
            close(connection, execution_row, &interaction, end, None).await?;
        }
    }
    let statement = sql::statement(ERASE_ANSWERS);
    bind_execution_and_attempt(statement, execution_row.id(), excluded_attempt)
        .execute(connection)
        .await?;
    Ok(())
}

async fn load_open(
    connection: &mut DatabaseConnection,
    id: ExecutionId,
    excluded_attempt: AttemptId,
) -> sql::Result<Vec<Interaction>> {
    let query =
        bind_execution_and_attempt(row::select_where(OPEN_IN_OTHER_ATTEMPTS), id, excluded_attempt);
    let rows = query.fetch_all(connection).await?;
    rows.iter().map(|row| Ok(StoredInteraction::read(Columns(row))?.interaction)).collect()
}

fn bind_execution_and_attempt(
    statement: SqlStatement,
    id: ExecutionId,
    excluded_attempt: AttemptId,
) -> SqlStatement {
    let AttemptId { turn, attempt } = excluded_attempt;
    statement.bind(id.0).bind(i64::from(turn)).bind(i64::from(attempt))
}

/// Closes an open interaction with its event and its decision.
pub(super) async fn close(
    connection: &mut DatabaseConnection,
    execution_row: &mut ExecutionRow,
    interaction: &Interaction,
    redacted_end: &InteractionEnd,
    sealed_end: Option<&[u8]>,
) -> sql::Result<()> {
    sql::statement(UPDATE_CLOSED)
        .bind(interaction.id.0)
        .bind(redacted_end.state.as_str())
        .bind(to_json(redacted_end)?)
        .bind(sealed_end)
        .execute(connection)
        .await?;
    if let Some(decision) = permission_decision(interaction, redacted_end) {
        decisions::insert(connection, &decision).await?;
    }
    execution_row
        .append_event(connection, redacted_end.at, closed_event(interaction.id, redacted_end))
        .await?;
    team_runs::report_closed(connection, interaction.id, redacted_end).await
}
