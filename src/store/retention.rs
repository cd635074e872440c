//! Taking executions out of the ledger, in turns that are short, and giving their bytes back.

use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::stock::{Removal, Sweep};
use async_trait::async_trait;
use uuid::Uuid;

use super::column::{Columns, micros};
use super::sql::{self, Asked, Connection};
use super::writer::Change;

/// A turn ends when it has removed so many chunks of text: 16 MiB, or one execution that has more.
const CHUNKS: u64 = 256;

/// Pages that a turn gives back: 1 MiB.
const PAGES: i64 = 256;

/// Of all pages, this part may stay free: it is used by what comes next.
const SLACK: i64 = 16;

/// Whoever is still to be told of an execution finds it there. What follows is removed with it.
const ENDED: &str = "
    SELECT id FROM executions
    WHERE outcome IS NOT NULL AND ended_at >= $1 AND ended_at < $2 AND NOT EXISTS (
        SELECT 1 FROM push_targets WHERE execution = executions.id AND stage = 'open')
    ORDER BY ended_at, id LIMIT $3";

const REMOVE: &str = "DELETE FROM executions WHERE id = $1 AND outcome IS NOT NULL";

#[async_trait]
impl Change for Sweep {
    type Answer = u64;

    async fn make(&self, connection: &mut Connection) -> sql::Result<u64> {
        let rows = sql::query(ENDED)
            .bind(self.from.map_or(i64::MIN, micros))
            .bind(self.before.map_or(i64::MAX, micros))
            .bind(i64::from(self.most))
            .fetch_all(&mut *connection)
            .await?;
        let (mut removed, mut chunks) = (0, 0);
        for row in &rows {
            if chunks >= CHUNKS {
                break;
            }
            let id = Columns(row).uuid("id")?;
            chunks += count_chunks(&mut *connection, id).await?;
            removed += sql::query(REMOVE).bind(id).execute(&mut *connection).await?;
        }
        Ok(removed)
    }
}

async fn count_chunks(connection: impl Asked, id: Uuid) -> sql::Result<u64> {
    let count = sql::query("SELECT count(*) AS chunks FROM chunks WHERE execution = $1").bind(id);
    Columns(&count.fetch_one(connection).await?).number("chunks")
}

/// One execution goes, if it has ended.
pub(super) struct Remove(pub(super) ExecutionId);

#[async_trait]
impl Change for Remove {
    type Answer = Removal;

    async fn make(&self, connection: &mut Connection) -> sql::Result<Removal> {
        let gone = sql::query(REMOVE).bind(self.0.0).execute(&mut *connection).await?;
        if gone > 0 {
            return Ok(Removal::Removed);
        }
        let row = sql::query("SELECT 1 FROM executions WHERE id = $1").bind(self.0.0);
        let is_there = row.fetch_optional(connection).await?.is_some();
        Ok(if is_there { Removal::Unfinished } else { Removal::Unknown })
    }
}

/// Some pages that hold nothing go from the end of the file.
pub(super) struct Shrink;

#[async_trait]
impl Change for Shrink {
    type Answer = u64;

    async fn make(&self, connection: &mut Connection) -> sql::Result<u64> {
        let (pages, free) = pages(connection).await?;
        if free <= PAGES.max(pages / SLACK) {
            return Ok(0);
        }
        // Each step of the statement frees one page.
        sql::query("PRAGMA incremental_vacuum(256)").fetch_all(&mut *connection).await?;
        let size: i64 = sql::query("PRAGMA page_size").fetch_scalar(&mut *connection).await?;
        let (left, _) = self::pages(connection).await?;
        Ok(u64::try_from((pages - left) * size).unwrap_or_default())
    }
}

/// All pages, and those that hold nothing.
async fn pages(connection: &mut Connection) -> sql::Result<(i64, i64)> {
    let all = sql::query("PRAGMA page_count").fetch_scalar(&mut *connection).await?;
    let free = sql::query("PRAGMA freelist_count").fetch_scalar(connection).await?;
    Ok((all, free))
}
