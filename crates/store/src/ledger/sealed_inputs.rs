//! Sealed inputs: stored in pieces, read back whole, and erased.

use algonius_actors::model::id::ExecutionId;
use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::engine::read_cache::Invalidation;
use crate::engine::row_codec::{Columns, micros};
use crate::engine::sql::{self, DatabaseConnection, ReaderPool};
use crate::engine::writer::WriteCommand;

/// Number of bytes of a piece.
const MAX_PIECE_BYTES: usize = 64 << 10;

const INSERT: &str = "INSERT INTO sealed_inputs (execution, number, sealed) VALUES ($1, $2, $3)";

const DELETE: &str = "DELETE FROM sealed_inputs WHERE execution = $1";

const SELECT_PIECES: &str = "SELECT sealed FROM sealed_inputs WHERE execution = $1 ORDER BY number";

const SELECT_ENDED: &str = "
    SELECT executions.id FROM (SELECT DISTINCT execution FROM sealed_inputs)
        JOIN executions ON executions.id = execution
    WHERE ended_at < $1";

/// Stores the sealed input of an execution.
pub(crate) async fn insert(
    connection: &mut DatabaseConnection,
    id: ExecutionId,
    sealed: Option<&[u8]>,
) -> sql::Result<()> {
    let pieces = sealed.unwrap_or_default().chunks(MAX_PIECE_BYTES);
    // In rows of bounded size, because SQLite reads and writes a large cell as a whole.
    for (number, piece) in (0_i64..).zip(pieces) {
        let statement = sql::statement(INSERT).bind(id.0).bind(number).bind(piece);
        statement.execute(&mut *connection).await?;
    }
    Ok(())
}

/// Erases the sealed input of an execution.
pub(crate) async fn erase(connection: &mut DatabaseConnection, id: ExecutionId) -> sql::Result<()> {
    sql::statement(DELETE).bind(id.0).execute(connection).await?;
    Ok(())
}

/// Reads the sealed input of an execution; returns `None` if there is none.
pub(crate) async fn read(pool: &ReaderPool, id: ExecutionId) -> sql::Result<Option<Vec<u8>>> {
    let rows = sql::statement(SELECT_PIECES).bind(id.0).fetch_all(pool).await?;
    let mut sealed = Vec::new();
    for row in &rows {
        sealed.extend_from_slice(Columns(row).get::<&[u8]>("sealed")?);
    }
    Ok((!rows.is_empty()).then_some(sealed))
}

/// Erases the sealed inputs of executions that ended before this time.
pub(crate) struct EraseExpiredInputs(pub(crate) DateTime<Utc>);

#[async_trait]
impl WriteCommand for EraseExpiredInputs {
    type WriteOutput = u64;

    fn invalidation(&self) -> Invalidation {
        Invalidation::Nothing
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<u64> {
        let rows =
            sql::statement(SELECT_ENDED).bind(micros(self.0)).fetch_all(&mut *connection).await?;
        for row in &rows {
            erase(&mut *connection, ExecutionId(Columns(row).uuid("id")?)).await?;
        }
        Ok(rows.len() as u64)
    }
}
