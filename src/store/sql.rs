//! Statements and rows: the little of an engine that the store needs, and the one place that names it.
//!
//! SQLite answers within the call. Whoever asks awaits all the same, so that the store reads alike for
//! an engine at the other end of a wire.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use rusqlite::{OpenFlags, Statement, ToSql};

pub(super) use readers::Readers;
pub(super) use row::{FromColumn, Passing, Row};
pub(super) use value::Value;

mod readers;
mod row;
#[cfg(test)]
mod tests;
mod value;

/// Statements that a connection keeps prepared. The store has fewer.
const KEPT: usize = 256;

/// What can go wrong with a statement.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// SQLite refused or failed.
    #[error(transparent)]
    Engine(#[from] rusqlite::Error),
    /// A row is not what it should be.
    #[error("a row cannot be read: {0}")]
    Decode(Box<dyn std::error::Error + Send + Sync>),
    /// A value cannot be stored.
    #[error("a value cannot be stored: {0}")]
    Encode(Box<dyn std::error::Error + Send + Sync>),
    /// The store was closed, or every reader was taken for too long.
    #[error("{0}")]
    Away(&'static str),
}

/// What a statement comes to.
pub(super) type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// SQLite's own number for it, whose lower byte says what and the rest where.
    pub(super) fn number(&self) -> Option<i32> {
        let Self::Engine(rusqlite::Error::SqliteFailure(error, _)) = self else { return None };
        Some(error.extended_code)
    }
}

/// A statement and what is bound to it: `$1` is the first value, wherever it stands.
#[derive(Debug, Clone)]
pub(super) struct Query {
    text: Cow<'static, str>,
    values: Vec<Value>,
    is_apart: bool,
}

/// Begins a statement.
pub(super) fn query(text: impl Into<Cow<'static, str>>) -> Query {
    Query { text: text.into(), values: Vec::new(), is_apart: false }
}

impl Query {
    /// Binds the next value.
    pub(super) fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    /// It may look at much: a reader answers it on a thread where nothing else waits.
    pub(super) const fn apart(mut self) -> Self {
        self.is_apart = true;
        self
    }

    /// Adds to the text.
    pub(super) fn push(&mut self, text: &str) -> &mut Self {
        self.text.to_mut().push_str(text);
        self
    }

    /// Adds the next value to the text and binds it.
    pub(super) fn push_bind(&mut self, value: impl Into<Value>) -> &mut Self {
        self.values.push(value.into());
        let place = format!("${}", self.values.len());
        self.push(&place)
    }

    /// Adds values to the text, with commas between them.
    pub(super) fn push_list(&mut self, values: impl IntoIterator<Item = String>) -> &mut Self {
        for (number, value) in values.into_iter().enumerate() {
            if number > 0 {
                self.push(", ");
            }
            self.push_bind(value);
        }
        self
    }

    /// Its text.
    #[cfg(test)]
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Changes something; answers how many rows.
    pub(super) async fn execute(self, connection: &mut Connection) -> Result<u64> {
        connection.change(&self)
    }

    /// Takes each row as it passes by.
    pub(super) async fn each(
        self,
        readers: &Readers,
        take: impl FnMut(Passing<'_>) -> Result<()>,
    ) -> Result<()> {
        readers.each(&self, take).await
    }

    /// All rows.
    pub(super) async fn fetch_all(self, asked: impl Asked) -> Result<Vec<Row>> {
        asked.rows(self).await
    }

    /// The first row, if there is one.
    pub(super) async fn fetch_optional(self, asked: impl Asked) -> Result<Option<Row>> {
        Ok(asked.rows(self).await?.into_iter().next())
    }

    /// The first row, which there is.
    pub(super) async fn fetch_one(self, asked: impl Asked) -> Result<Row> {
        let row = self.fetch_optional(asked).await?;
        row.ok_or_else(|| Error::Decode("a row that must be there is missing".into()))
    }

    /// The first column of the first row, which there is.
    pub(super) async fn fetch_scalar<T>(self, asked: impl Asked) -> Result<T>
    where
        T: for<'row> FromColumn<'row>,
    {
        self.fetch_one(asked).await?.at(0)
    }
}

/// What answers a statement with rows.
pub(super) trait Asked {
    /// All rows of a statement.
    fn rows(self, query: Query) -> impl Future<Output = Result<Vec<Row>>> + Send;
}

impl Asked for &mut Connection {
    async fn rows(self, query: Query) -> Result<Vec<Row>> {
        self.read(&query)
    }
}

/// How a database is opened.
#[derive(Debug, Clone, Copy)]
pub(super) enum Access {
    /// To be changed; it is made when it is missing.
    Write,
    /// To be changed; one that is missing is an error.
    Known,
    /// To be read only.
    Read,
}

/// When the write-ahead log is folded into the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    /// Not yet.
    Later,
    /// By somebody else.
    Beside,
    /// At once, by who writes.
    Now,
}

/// One connection to the database.
#[derive(Debug)]
pub(super) struct Connection {
    inner: rusqlite::Connection,
    /// What the columns of each statement are called.
    names: HashMap<String, Arc<[Box<str>]>>,
}

impl Connection {
    /// Opens a database; a statement that finds it locked waits for so long.
    pub(super) fn open(database: &Path, access: Access, busy: Duration) -> Result<Self> {
        let flags = match access {
            Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
            Access::Known => OpenFlags::SQLITE_OPEN_READ_WRITE,
            Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
        };
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let inner = rusqlite::Connection::open_with_flags(database, flags)?;
        inner.busy_timeout(busy)?;
        // What is bound does not change how a statement is answered, so it is prepared once.
        inner.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        inner.set_prepared_statement_cache_capacity(KEPT);
        Ok(Self { inner, names: HashMap::new() })
    }

    /// Runs statements that take no values and of which no row is wanted.
    pub(super) fn batch(&mut self, text: &str) -> Result<()> {
        Ok(self.inner.execute_batch(text)?)
    }

    /// Has somebody told after each commit how many pages the write-ahead log has, and folds it when that
    /// one says so. SQLite itself does not any more.
    pub(super) fn after_commits(
        &mut self,
        mut told: impl FnMut(u32) -> Fold + Send + 'static,
    ) -> Result<()> {
        self.inner.wal_hook(Some(move |log: &mut Wal, pages| {
            if told(u32::try_from(pages).unwrap_or(0)) == Fold::Now {
                _ = log.checkpoint(); // Whoever does it now spares it; else the next commit comes.
            }
            Ok(())
        }))?;
        Ok(())
    }

    /// Closes it, and tells what went wrong with that.
    pub(super) fn close(self) -> Result<()> {
        self.inner.close().map_err(|(_, error)| error.into())
    }

    /// Changes something; answers how many rows.
    pub(super) fn change(&mut self, query: &Query) -> Result<u64> {
        let mut statement = self.inner.prepare_cached(&query.text)?;
        bind(&mut statement, &query.values)?;
        Ok(statement.raw_execute()? as u64)
    }

    /// Gives each row of a statement, as it passes by.
    pub(super) fn pass(
        &mut self,
        query: &Query,
        mut take: impl FnMut(Passing<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut statement = self.inner.prepare_cached(&query.text)?;
        bind(&mut statement, &query.values)?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            take(Passing(row))?;
        }
        Ok(())
    }

    /// All rows of a statement.
    pub(super) fn read(&mut self, query: &Query) -> Result<Vec<Row>> {
        let mut statement = self.inner.prepare_cached(&query.text)?;
        bind(&mut statement, &query.values)?;
        let names = names(&mut self.names, &query.text, &statement);
        let (count, mut rows) = (names.len(), statement.raw_query());
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            let values = (0..count).map(|place| row.get_ref(place).map(Value::from));
            let values = values.collect::<std::result::Result<_, _>>()?;
            all.push(Row { names: Arc::clone(&names), values });
        }
        Ok(all)
    }
}

/// The names of a statement's columns; few texts are ever asked.
fn names(
    known: &mut HashMap<String, Arc<[Box<str>]>>,
    text: &str,
    statement: &Statement<'_>,
) -> Arc<[Box<str>]> {
    if let Some(names) = known.get(text) {
        return Arc::clone(names);
    }
    if known.len() >= KEPT {
        known.clear();
    }
    let names: Arc<[Box<str>]> = statement.column_names().map(Into::into).collect();
    known.insert(text.to_owned(), Arc::clone(&names));
    names
}

/// Binds each value at the places of its number.
fn bind(statement: &mut Statement<'_>, values: &[Value]) -> Result<()> {
    for place in 1..=statement.parameter_count() {
        let name = statement.parameter_name(place).and_then(|name| name.strip_prefix('$'));
        let number: Option<usize> = name.and_then(|number| number.parse().ok());
        let value = number.and_then(|number| values.get(number.checked_sub(1)?));
        let value =
            value.ok_or_else(|| Error::Encode("a value of a statement is missing".into()))?;
        statement.raw_bind_parameter(place, value as &dyn ToSql)?;
    }
    Ok(())
}
