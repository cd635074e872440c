//! Statements and rows: the part of a database engine that the store needs. Only this module uses the engine.
//!
//! SQLite answers within the call. The functions are asynchronous nevertheless, so that the store could use a remote
//! engine without a change.

use std::borrow::Cow;
use std::collections::HashMap;
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use rusqlite::{OpenFlags, Statement, ToSql};
use uuid::Uuid;

pub(crate) use readers::ReaderPool;
pub(crate) use row::{FromColumn, RowRef, SqlRow};
pub(crate) use value::ColumnValue;

mod readers;
mod row;
#[cfg(test)]
mod tests;
mod value;

/// Maximum time for which a statement waits for a lock of the database.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of prepared statements of a connection. The store has fewer.
const MAX_CACHED_STATEMENTS: usize = 256;

/// Error of a statement.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// SQLite refused the statement or failed.
    #[error(transparent)]
    Engine(#[from] rusqlite::Error),
    /// A row has invalid content.
    #[error("a row cannot be read: {0}")]
    Decode(Box<dyn std::error::Error + Send + Sync>),
    /// A value cannot be stored.
    #[error("a value cannot be stored: {0}")]
    Encode(Box<dyn std::error::Error + Send + Sync>),
    /// The store is closed, or every reader was busy for too long.
    #[error("{0}")]
    Unavailable(&'static str),
}

/// Result of a statement.
pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns the extended SQLite error code, whose lower byte is the primary code.
    pub(crate) fn extended_code(&self) -> Option<i32> {
        let Self::Engine(rusqlite::Error::SqliteFailure(error, _)) = self else { return None };
        Some(error.extended_code)
    }
}

/// Statement with its bound values: `$1` is the first value, at every position.
#[derive(Debug, Clone)]
pub(crate) struct SqlStatement {
    text: Cow<'static, str>,
    values: Vec<ColumnValue>,
    is_long_running: bool,
}

/// Creates a statement.
pub(crate) fn statement(text: impl Into<Cow<'static, str>>) -> SqlStatement {
    SqlStatement { text: text.into(), values: Vec::new(), is_long_running: false }
}

impl SqlStatement {
    /// Binds the next value.
    pub(crate) fn bind(mut self, value: impl Into<ColumnValue>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Marks a statement that may read much: it runs on a thread where nothing else waits.
    pub(crate) const fn mark_long_running(mut self) -> Self {
        self.is_long_running = true;
        self
    }

    /// Appends to the text.
    pub(crate) fn push(&mut self, text: &str) -> &mut Self {
        self.text.to_mut().push_str(text);
        self
    }

    /// Appends the placeholder of the next value to the text and binds the value.
    pub(crate) fn push_bind(&mut self, value: impl Into<ColumnValue>) -> &mut Self {
        self.values.push(value.into());
        let placeholder = format!("${}", self.values.len());
        self.push(&placeholder)
    }

    /// Appends placeholders for values to the text, separated by commas.
    pub(crate) fn push_list(&mut self, values: impl IntoIterator<Item = String>) -> &mut Self {
        for (number, value) in values.into_iter().enumerate() {
            if number > 0 {
                self.push(", ");
            }
            self.push_bind(value);
        }
        self
    }

    /// Returns the text of the statement.
    #[cfg(test)]
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Executes the statement; returns the number of changed rows.
    pub(crate) async fn execute(self, connection: &mut DatabaseConnection) -> Result<u64> {
        connection.execute(&self)
    }

    /// Passes each row to a function without collecting the rows.
    pub(crate) async fn for_each_row(
        self,
        readers: &ReaderPool,
        visit: impl FnMut(RowRef<'_>) -> Result<()>,
    ) -> Result<()> {
        readers.for_each_row(&self, visit).await
    }

    /// Returns all rows.
    pub(crate) async fn fetch_all(self, source: impl Queryable) -> Result<Vec<SqlRow>> {
        source.rows(self).await
    }

    /// Returns the first row, if there is one.
    pub(crate) async fn fetch_optional(self, source: impl Queryable) -> Result<Option<SqlRow>> {
        Ok(source.rows(self).await?.into_iter().next())
    }

    /// Returns the first row, which must exist.
    pub(crate) async fn fetch_one(self, source: impl Queryable) -> Result<SqlRow> {
        let row = self.fetch_optional(source).await?;
        row.ok_or_else(|| Error::Decode("a row that must be there is missing".into()))
    }

    /// Returns the first column of the first row, which must exist.
    pub(crate) async fn fetch_scalar<T>(self, source: impl Queryable) -> Result<T>
    where
        T: for<'row> FromColumn<'row>,
    {
        self.fetch_one(source).await?.column_at(0)
    }
}

/// Target that answers a statement with rows.
pub(crate) trait Queryable {
    /// Returns all rows of a statement.
    fn rows(self, statement: SqlStatement) -> impl Future<Output = Result<Vec<SqlRow>>> + Send;
}

impl Queryable for &mut DatabaseConnection {
    async fn rows(self, statement: SqlStatement) -> Result<Vec<SqlRow>> {
        self.fetch_all(&statement)
    }
}

/// Mode in which a database is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AccessMode {
    /// For writing; a missing database is created.
    OpenOrCreate,
    /// For writing; a missing database is an error.
    ReadWrite,
    /// For reading only.
    ReadOnly,
}

/// Time at which the write-ahead log is checkpointed into the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckpointMode {
    /// Not now.
    Skip,
    /// Now, by another connection.
    Background,
    /// Now, by the writer.
    Blocking,
}

/// Connection to the database.
#[derive(Debug)]
pub(crate) struct DatabaseConnection {
    inner: rusqlite::Connection,
    /// Column names of each statement.
    column_names: HashMap<String, Arc<[Box<str>]>>,
    /// Ids of executions that the open transaction has changed beside those that its changes name.
    extra_changed_ids: Vec<Uuid>,
}

impl DatabaseConnection {
    /// Opens a database; a statement waits up to `busy_timeout` for a lock.
    pub(crate) fn open(
        database: &Path,
        access: AccessMode,
        busy_timeout: Duration,
    ) -> Result<Self> {
        let flags = match access {
            AccessMode::OpenOrCreate => {
                OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
            }
            AccessMode::ReadWrite => OpenFlags::SQLITE_OPEN_READ_WRITE,
            AccessMode::ReadOnly => OpenFlags::SQLITE_OPEN_READ_ONLY,
        };
        // Each connection has one user at a time, so the mutexes of SQLite protect nothing here.
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let inner = rusqlite::Connection::open_with_flags(database, flags)?;
        inner.busy_timeout(busy_timeout)?;
        // With this setting bound values do not change the query plan, so each statement is prepared once.
        inner.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        inner.set_prepared_statement_cache_capacity(MAX_CACHED_STATEMENTS);
        Ok(Self { inner, column_names: HashMap::new(), extra_changed_ids: Vec::new() })
    }

    /// Notes that the open transaction changes an execution that its change does not name.
    pub(crate) fn mark_execution_changed(&mut self, execution: Uuid) {
        self.extra_changed_ids.push(execution);
    }

    /// Takes the noted changes.
    pub(crate) fn take_extra_changed_ids(&mut self) -> Vec<Uuid> {
        mem::take(&mut self.extra_changed_ids)
    }

    /// Runs statements without values and without result rows.
    pub(crate) fn execute_batch(&mut self, text: &str) -> Result<()> {
        Ok(self.inner.execute_batch(text)?)
    }

    /// Registers a function that receives the number of pages of the write-ahead log after each commit and decides
    /// about the checkpoint. The automatic checkpoint of SQLite is disabled by this call.
    pub(crate) fn set_checkpoint_policy(
        &mut self,
        mut policy: impl FnMut(u32) -> CheckpointMode + Send + 'static,
    ) -> Result<()> {
        self.inner.wal_hook(Some(move |log: &mut Wal, pages| {
            if policy(u32::try_from(pages).unwrap_or(0)) == CheckpointMode::Blocking {
                _ = log.checkpoint(); // Whoever does it now spares it; else the next commit comes.
            }
            Ok(())
        }))?;
        Ok(())
    }

    /// Closes the connection and reports an error of the close.
    pub(crate) fn close(self) -> Result<()> {
        self.inner.close().map_err(|(_, error)| error.into())
    }

    /// Executes a statement; returns the number of changed rows.
    pub(crate) fn execute(&mut self, statement: &SqlStatement) -> Result<u64> {
        let mut prepared = self.inner.prepare_cached(&statement.text)?;
        bind(&mut prepared, &statement.values)?;
        Ok(prepared.raw_execute()? as u64)
    }

    /// Passes each row of a statement to a function.
    pub(crate) fn for_each_row(
        &mut self,
        statement: &SqlStatement,
        mut visit: impl FnMut(RowRef<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut prepared = self.inner.prepare_cached(&statement.text)?;
        bind(&mut prepared, &statement.values)?;
        let mut rows = prepared.raw_query();
        while let Some(row) = rows.next()? {
            visit(RowRef(row))?;
        }
        Ok(())
    }

    /// Returns all rows of a statement.
    pub(crate) fn fetch_all(&mut self, statement: &SqlStatement) -> Result<Vec<SqlRow>> {
        let mut prepared = self.inner.prepare_cached(&statement.text)?;
        bind(&mut prepared, &statement.values)?;
        let column_names = cached_column_names(&mut self.column_names, &statement.text, &prepared);
        let (column_count, mut rows) = (column_names.len(), prepared.raw_query());
        let mut fetched = Vec::new();
        while let Some(row) = rows.next()? {
            let values = (0..column_count).map(|index| row.get_ref(index).map(ColumnValue::from));
            let values = values.collect::<std::result::Result<_, _>>()?;
            fetched.push(SqlRow { column_names: Arc::clone(&column_names), values });
        }
        Ok(fetched)
    }
}

/// Returns the column names of a statement; the number of different texts is small.
fn cached_column_names(
    cache: &mut HashMap<String, Arc<[Box<str>]>>,
    text: &str,
    statement: &Statement<'_>,
) -> Arc<[Box<str>]> {
    if let Some(column_names) = cache.get(text) {
        return Arc::clone(column_names);
    }
    // Lists have texts that depend on their filters, so the number of texts has no natural bound.
    if cache.len() >= MAX_CACHED_STATEMENTS {
        cache.clear();
    }
    let column_names: Arc<[Box<str>]> = statement.column_names().map(Into::into).collect();
    cache.insert(text.to_owned(), Arc::clone(&column_names));
    column_names
}

/// Binds each value at all positions of its number.
fn bind(statement: &mut Statement<'_>, values: &[ColumnValue]) -> Result<()> {
    for index in 1..=statement.parameter_count() {
        let name = statement.parameter_name(index).and_then(|name| name.strip_prefix('$'));
        let number: Option<usize> = name.and_then(|number| number.parse().ok());
        let value = number.and_then(|number| values.get(number.checked_sub(1)?));
        let value =
            value.ok_or_else(|| Error::Encode("a value of a statement is missing".into()))?;
        statement.raw_bind_parameter(index, value as &dyn ToSql)?;
    }
    Ok(())
}
