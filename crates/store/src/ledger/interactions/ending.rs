//! Ends of interactions: by an answer, and by the end of the attempt or of the execution that asked.

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::interaction::{ClosedBy, Interaction};
use algonius_actors::ports::interactions::reports::{closed, decision, lost};
use chrono::{DateTime, Utc};

use super::decisions;
use super::row::StoredInteraction;
use crate::engine::row_codec::{Columns, json};
use crate::engine::sql::{self, DatabaseConnection};
use crate::ledger::execution_row::Head;

const OPEN: &str = "
    SELECT * FROM interactions
    WHERE execution = $1 AND state = 'open' AND (turn, attempt) <> ($2, $3) ORDER BY id";

const CLOSE: &str = "
    UPDATE interactions SET state = $2, closed = $3, sealed = $4 WHERE id = $1 AND state = 'open'";

/// The literal condition selects the index of sealed rows, which is empty nearly always.
const ERASE: &str = "
    UPDATE interactions SET sealed = NULL
    WHERE execution = $1 AND sealed IS NOT NULL AND (turn, attempt) <> ($2, $3)";

/// Attempt that does not exist.
const NO_ATTEMPT: AttemptId = AttemptId { turn: 0, attempt: 0 };

/// Closes all open interactions of an execution that settles, and erases the answers that were never delivered.
pub(crate) async fn end_all(
    connection: &mut DatabaseConnection,
    head: &mut Head,
    end: &ClosedBy,
) -> sql::Result<()> {
    end_others(connection, head, NO_ATTEMPT, end).await
}

/// Closes the open interactions of earlier attempts than the next one, and erases their answers that were never
/// delivered: their processes have ended.
pub(crate) async fn end_earlier(
    connection: &mut DatabaseConnection,
    head: &mut Head,
    next: AttemptId,
    at: DateTime<Utc>,
) -> sql::Result<()> {
    end_others(connection, head, next, &lost(at)).await
}

async fn end_others(
    connection: &mut DatabaseConnection,
    head: &mut Head,
    than: AttemptId,
    end: &ClosedBy,
) -> sql::Result<()> {
    if head.has_open_interactions() {
        for open in open_of(connection, head.id(), than).await? {
            close(connection, head, &open, end, None).await?;
        }
    }
    of_others(ERASE, head.id(), than).execute(connection).await?;
    Ok(())
}

async fn open_of(
    connection: &mut DatabaseConnection,
    id: ExecutionId,
    than: AttemptId,
) -> sql::Result<Vec<Interaction>> {
    let rows = of_others(OPEN, id, than).fetch_all(connection).await?;
    rows.iter().map(|row| Ok(StoredInteraction::read(Columns(row))?.interaction)).collect()
}

fn of_others(text: &'static str, id: ExecutionId, than: AttemptId) -> sql::Query {
    let AttemptId { turn, attempt } = than;
    sql::query(text).bind(id.0).bind(i64::from(turn)).bind(i64::from(attempt))
}

/// Closes an open interaction with its event and its decision.
pub(super) async fn close(
    connection: &mut DatabaseConnection,
    head: &mut Head,
    interaction: &Interaction,
    shown: &ClosedBy,
    sealed: Option<&[u8]>,
) -> sql::Result<()> {
    sql::query(CLOSE)
        .bind(interaction.id.0)
        .bind(shown.state.as_str())
        .bind(json(shown)?)
        .bind(sealed)
        .execute(connection)
        .await?;
    if let Some(decision) = decision(interaction, shown) {
        decisions::insert(connection, &decision).await?;
    }
    head.append(connection, shown.at, closed(interaction.id, shown)).await
}
