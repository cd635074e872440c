//! History in parts of bounded size, and storage statistics.

use std::collections::BTreeMap;
use std::path::Path;

use algonius_actors::model::execution::event::{Event, TextChannel, TextRange};
use algonius_actors::model::host::storage_stats::{
    DeletionOutcome, RetentionBatchSelector, StorageStats,
};
use algonius_actors::model::id::{ExecutionId, PrincipalId};
use algonius_actors::ports::history::{History, TextSlice};
use algonius_actors::ports::ledger::LedgerError;
use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::retention::{ReleaseFreePages, RemoveExecution};
use crate::Store;
use crate::engine::error::ledger_error;
use crate::engine::row_codec::Columns;
use crate::engine::sql::{self, ReaderPool};
use crate::ledger::execution_row::read_attempt_id;
use crate::ledger::sealed_inputs::EraseExpiredInputs;
use crate::ledger::{events, text_chunks};

/// Last chunk of each text; the other columns come from the row with the greatest number.
const SELECT_TEXT_LENGTHS: &str = "
    SELECT turn, attempt, channel, max(number), start + octet_length(text) AS bytes FROM chunks
    WHERE execution = $1 GROUP BY turn, attempt, channel ORDER BY turn, attempt, channel";

const SELECT_STORAGE_STATS: &str = "
    SELECT (SELECT count(*) FROM executions) AS executions,
        (SELECT count(*) FROM executions WHERE outcome IS NULL) AS unfinished,
        (SELECT accepted_at FROM executions ORDER BY id LIMIT 1) AS oldest,
        (SELECT page_count FROM pragma_page_count()) AS pages,
        (SELECT freelist_count FROM pragma_freelist_count()) AS free,
        (SELECT page_size FROM pragma_page_size()) AS page";

#[async_trait]
impl History for Store {
    async fn next_events(
        &self,
        id: ExecutionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Event>, LedgerError> {
        events::read_page_after(&self.readers, id, after, limit).await.map_err(ledger_error)
    }

    async fn text_ranges(&self, id: ExecutionId) -> Result<Vec<TextRange>, LedgerError> {
        load_text_ranges(&self.readers, id).await.map_err(ledger_error)
    }

    async fn text_slice(
        &self,
        id: ExecutionId,
        range: TextRange,
    ) -> Result<TextSlice, LedgerError> {
        text_chunks::read_complete_chars(&self.readers, id, range).await.map_err(ledger_error)
    }

    async fn principal_names(&self) -> Result<BTreeMap<PrincipalId, String>, LedgerError> {
        load_principal_names(&self.readers).await.map_err(ledger_error)
    }

    async fn storage_stats(&self) -> Result<StorageStats, LedgerError> {
        load_storage_stats(&self.readers, &self.database).await.map_err(ledger_error)
    }

    async fn remove(&self, id: ExecutionId) -> Result<DeletionOutcome, LedgerError> {
        self.writer.submit(RemoveExecution(id)).await
    }

    async fn remove_batch(&self, batch: RetentionBatchSelector) -> Result<u64, LedgerError> {
        self.writer.submit(batch).await
    }

    async fn erase_sealed_inputs(&self, before: DateTime<Utc>) -> Result<u64, LedgerError> {
        self.writer.submit(EraseExpiredInputs(before)).await
    }

    async fn release_free_pages(&self) -> Result<u64, LedgerError> {
        self.writer.submit(ReleaseFreePages).await
    }
}

async fn load_text_ranges(pool: &ReaderPool, id: ExecutionId) -> sql::Result<Vec<TextRange>> {
    let rows = sql::statement(SELECT_TEXT_LENGTHS).bind(id.0).fetch_all(pool).await?;
    let text_range = |columns: Columns<'_>| {
        let channel = columns.enum_value("channel", TextChannel::parse)?;
        Ok(TextRange {
            attempt_id: read_attempt_id(columns)?,
            channel,
            from: 0,
            to: columns.number("bytes")?,
        })
    };
    rows.iter().map(|row| text_range(Columns(row))).collect()
}

async fn load_principal_names(pool: &ReaderPool) -> sql::Result<BTreeMap<PrincipalId, String>> {
    let rows = sql::statement("SELECT id, name FROM principals").fetch_all(pool).await?;
    let columns = rows.iter().map(Columns);
    columns.map(|row| Ok((PrincipalId(row.uuid("id")?), row.get("name")?))).collect()
}

async fn load_storage_stats(pool: &ReaderPool, database: &Path) -> sql::Result<StorageStats> {
    let row = sql::statement(SELECT_STORAGE_STATS).mark_long_running().fetch_one(pool).await?;
    let columns = Columns(&row);
    let executions: u64 = columns.number("executions")?;
    let unfinished: u64 = columns.number("unfinished")?;
    let page_bytes: u64 = columns.number("page")?;
    let log_metadata = std::fs::metadata(database.with_extension("db-wal")); // None where it is folded in.
    Ok(StorageStats {
        executions,
        ended: executions.saturating_sub(unfinished),
        oldest: columns.maybe_time("oldest")?,
        bytes: page_bytes * columns.number::<u64>("pages")?,
        free_bytes: page_bytes * columns.number::<u64>("free")?,
        log_bytes: log_metadata.map(|metadata| metadata.len()).unwrap_or_default(),
    })
}
