//! Removal of executions in short batches, and the release of their disk space.

use algonius_actors::model::host::storage_stats::{DeletionOutcome, RetentionBatchSelector};
use algonius_actors::model::id::ExecutionId;
use async_trait::async_trait;
use uuid::Uuid;

use crate::engine::row_codec::{Columns, micros};
use crate::engine::sql::{self, DatabaseConnection, Queryable};
use crate::engine::writer::WriteCommand;

/// Number of text chunks after which a batch ends: 16 MiB, or one execution that has more.
const MAX_BATCH_CHUNKS: u64 = 256;

/// Number of pages that a batch releases: 1 MiB.
const MAX_RELEASED_PAGES: i64 = 256;

/// Fraction of all pages that may stay free: new data uses these pages.
const FREE_PAGE_DIVISOR: i64 = 16;

/// An execution with open push targets stays, because their notifications still need it. A hop stays until its run has
/// ended, because the run reads its answer. All dependent rows are removed with the execution.
const SELECT_ENDED: &str = "
    SELECT id FROM executions
    WHERE outcome IS NOT NULL AND ended_at >= $1 AND ended_at < $2 AND NOT EXISTS (
        SELECT 1 FROM push_targets WHERE execution = executions.id AND stage = 'open')
        AND NOT EXISTS (
            SELECT 1 FROM executions AS run WHERE run.id = unhex(executions.parent, '-') AND run.outcome IS NULL)
    ORDER BY ended_at, id LIMIT $3";

const DELETE_EXECUTION: &str = "
    DELETE FROM executions WHERE id = $1 AND outcome IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM executions AS run WHERE run.id = unhex(executions.parent, '-') AND run.outcome IS NULL)";

#[async_trait]
impl WriteCommand for RetentionBatchSelector {
    type WriteOutput = u64;

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<u64> {
        let rows = sql::statement(SELECT_ENDED)
            .bind(self.from.map_or(i64::MIN, micros))
            .bind(self.before.map_or(i64::MAX, micros))
            .bind(i64::from(self.limit))
            .fetch_all(&mut *connection)
            .await?;
        let (mut removed_count, mut chunk_count) = (0, 0);
        for row in &rows {
            if chunk_count >= MAX_BATCH_CHUNKS {
                break;
            }
            let id = Columns(row).uuid("id")?;
            chunk_count += count_chunks(&mut *connection, id).await?;
            removed_count +=
                sql::statement(DELETE_EXECUTION).bind(id).execute(&mut *connection).await?;
        }
        Ok(removed_count)
    }
}

async fn count_chunks(connection: impl Queryable, id: Uuid) -> sql::Result<u64> {
    let query =
        sql::statement("SELECT count(*) AS chunks FROM chunks WHERE execution = $1").bind(id);
    Columns(&query.fetch_one(connection).await?).number("chunks")
}

/// Removal of one execution, if it has ended.
pub(crate) struct RemoveExecution(pub(crate) ExecutionId);

#[async_trait]
impl WriteCommand for RemoveExecution {
    type WriteOutput = DeletionOutcome;

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<DeletionOutcome> {
        let removed_count =
            sql::statement(DELETE_EXECUTION).bind(self.0.0).execute(&mut *connection).await?;
        if removed_count > 0 {
            return Ok(DeletionOutcome::Removed);
        }
        let query = sql::statement("SELECT 1 FROM executions WHERE id = $1").bind(self.0.0);
        let exists = query.fetch_optional(connection).await?.is_some();
        Ok(if exists { DeletionOutcome::NotEnded } else { DeletionOutcome::Unknown })
    }
}

/// Release of free pages at the end of the file.
pub(crate) struct ReleaseFreePages;

#[async_trait]
impl WriteCommand for ReleaseFreePages {
    type WriteOutput = u64;

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<u64> {
        let (page_count, free_count) = count_pages(connection).await?;
        if free_count <= MAX_RELEASED_PAGES.max(page_count / FREE_PAGE_DIVISOR) {
            return Ok(0);
        }
        // Each step of the statement frees one page.
        sql::statement("PRAGMA incremental_vacuum(256)").fetch_all(&mut *connection).await?;
        let page_bytes: i64 =
            sql::statement("PRAGMA page_size").fetch_scalar(&mut *connection).await?;
        let (remaining_count, _) = count_pages(connection).await?;
        Ok(u64::try_from((page_count - remaining_count) * page_bytes).unwrap_or_default())
    }
}

/// Returns the number of all pages and of free pages.
async fn count_pages(connection: &mut DatabaseConnection) -> sql::Result<(i64, i64)> {
    let page_count = sql::statement("PRAGMA page_count").fetch_scalar(&mut *connection).await?;
    let free_count = sql::statement("PRAGMA freelist_count").fetch_scalar(connection).await?;
    Ok((page_count, free_count))
}
