//! The history in parts of bounded size, and how much of it there is.

use std::collections::BTreeMap;
use std::path::Path;

use algonius_actors::model::event::{Channel, Event, Span};
use algonius_actors::model::id::{ExecutionId, PrincipalId};
use algonius_actors::model::stock::{Removal, Stock, Sweep};
use algonius_actors::ports::history::{History, Passage};
use algonius_actors::ports::ledger::LedgerError;
use async_trait::async_trait;

use super::column::Columns;
use super::fault::ledger_error;
use super::head::stamp;
use super::retention::{Remove, Shrink};
use super::sql::{self, Readers};
use super::{Store, events, text};

/// The last chunk of each text; its other columns come from the row of the greatest number.
const TEXTS: &str = "
    SELECT turn, attempt, channel, max(number), start + octet_length(text) AS bytes FROM chunks
    WHERE execution = $1 GROUP BY turn, attempt, channel ORDER BY turn, attempt, channel";

const STOCK: &str = "
    SELECT (SELECT count(*) FROM executions) AS executions,
        (SELECT count(*) FROM executions WHERE outcome IS NULL) AS unfinished,
        (SELECT accepted_at FROM executions ORDER BY id LIMIT 1) AS oldest,
        (SELECT page_count FROM pragma_page_count()) AS pages,
        (SELECT freelist_count FROM pragma_freelist_count()) AS free,
        (SELECT page_size FROM pragma_page_size()) AS page";

#[async_trait]
impl History for Store {
    async fn some_events(
        &self,
        id: ExecutionId,
        after: u64,
        most: u32,
    ) -> Result<Vec<Event>, LedgerError> {
        events::some_after(&self.readers, id, after, most).await.map_err(ledger_error)
    }

    async fn texts(&self, id: ExecutionId) -> Result<Vec<Span>, LedgerError> {
        texts(&self.readers, id).await.map_err(ledger_error)
    }

    async fn passage(&self, id: ExecutionId, span: Span) -> Result<Passage, LedgerError> {
        text::passage(&self.readers, id, span).await.map_err(ledger_error)
    }

    async fn callers(&self) -> Result<BTreeMap<PrincipalId, String>, LedgerError> {
        callers(&self.readers).await.map_err(ledger_error)
    }

    async fn stock(&self) -> Result<Stock, LedgerError> {
        stock(&self.readers, &self.database).await.map_err(ledger_error)
    }

    async fn remove(&self, id: ExecutionId) -> Result<Removal, LedgerError> {
        self.writer.order(Remove(id)).await
    }

    async fn sweep(&self, sweep: Sweep) -> Result<u64, LedgerError> {
        self.writer.order(sweep).await
    }

    async fn shrink(&self) -> Result<u64, LedgerError> {
        self.writer.order(Shrink).await
    }
}

async fn texts(pool: &Readers, id: ExecutionId) -> sql::Result<Vec<Span>> {
    let rows = sql::query(TEXTS).bind(id.0).fetch_all(pool).await?;
    let span = |columns: Columns<'_>| {
        let channel = columns.word("channel", Channel::parse)?;
        Ok(Span { stamp: stamp(columns)?, channel, from: 0, to: columns.number("bytes")? })
    };
    rows.iter().map(|row| span(Columns(row))).collect()
}

async fn callers(pool: &Readers) -> sql::Result<BTreeMap<PrincipalId, String>> {
    let rows = sql::query("SELECT id, name FROM principals").fetch_all(pool).await?;
    let each = rows.iter().map(Columns);
    each.map(|row| Ok((PrincipalId(row.uuid("id")?), row.plain("name")?))).collect()
}

async fn stock(pool: &Readers, database: &Path) -> sql::Result<Stock> {
    let row = sql::query(STOCK).apart().fetch_one(pool).await?;
    let columns = Columns(&row);
    let executions: u64 = columns.number("executions")?;
    let unfinished: u64 = columns.number("unfinished")?;
    let page: u64 = columns.number("page")?;
    let log = std::fs::metadata(database.with_extension("db-wal")); // None where it is folded in.
    Ok(Stock {
        executions,
        ended: executions.saturating_sub(unfinished),
        oldest: columns.maybe_time("oldest")?,
        bytes: page * columns.number::<u64>("pages")?,
        free_bytes: page * columns.number::<u64>("free")?,
        log_bytes: log.map(|log| log.len()).unwrap_or_default(),
    })
}
