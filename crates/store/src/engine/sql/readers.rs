//! Reader connections beside the connection of the writer.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};

use super::{
    AccessMode, DatabaseConnection, Error, Queryable, Result, RowRef, SqlRow, SqlStatement,
};

/// Maximum time to wait for a free connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// Number of reader connections.
const READER_COUNT: usize = 4;

/// Slot of a connection, which is empty after the close.
type ReaderSlot = Arc<Mutex<Option<DatabaseConnection>>>;

/// Reader connections of one database.
///
/// A statement that finds its rows by an index runs on the thread of the caller: it takes microseconds, and the
/// handover to another thread takes longer. A statement that may read much is marked with
/// [`SqlStatement::mark_long_running`].
#[derive(Debug, Clone)]
pub(crate) struct ReaderPool {
    slots: Arc<[ReaderSlot]>,
    next_slot: Arc<AtomicUsize>,
}

impl ReaderPool {
    /// Opens the connections. The connection of the writer must be open.
    pub(crate) fn open(database: &Path, busy_timeout: Duration) -> Result<Self> {
        let open_slot = |_| {
            Ok(ReaderSlot::new(Mutex::new(Some(DatabaseConnection::open(
                database,
                AccessMode::ReadOnly,
                busy_timeout,
            )?))))
        };
        let slots = (0..READER_COUNT).map(open_slot).collect::<Result<_>>()?;
        Ok(Self { slots, next_slot: Arc::default() })
    }

    /// Runs statements on one snapshot, on a thread where nothing else waits.
    pub(crate) async fn read_snapshot<const N: usize>(
        &self,
        statements: [SqlStatement; N],
    ) -> Result<[Vec<SqlRow>; N]> {
        let results = self.run_blocking(move |connection| {
            // A deferred transaction fixes the snapshot at its first read, so that the results agree with each other.
            connection.execute_batch("BEGIN")?;
            let results =
                statements.iter().map(|statement| connection.fetch_all(statement)).collect();
            connection.execute_batch("ROLLBACK")?;
            results
        });
        let results: Result<Vec<_>> = results.await?;
        results?.try_into().map_err(|_fewer| Error::Unavailable("an answer is missing"))
    }

    /// Waits until no connection reads, and closes all. Later reads fail.
    pub(crate) async fn close(&self) {
        for slot in &*self.slots {
            drop(slot.lock().await.take());
        }
    }

    /// Runs a function with a connection on a thread where nothing else waits.
    async fn run_blocking<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut DatabaseConnection) -> T + Send + 'static,
    ) -> Result<T> {
        let mut connection = self.acquire().await?;
        let result = tokio::task::spawn_blocking(move || connection.as_mut().map(operation)).await;
        result.ok().flatten().ok_or(Error::Unavailable("the store is closed"))
    }

    /// Passes each row of a statement to a function, on the thread of the caller.
    pub(in crate::engine::sql) async fn for_each_row(
        &self,
        statement: &SqlStatement,
        visit: impl FnMut(RowRef<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut connection = self.acquire().await?;
        connection
            .as_mut()
            .ok_or(Error::Unavailable("the store is closed"))?
            .for_each_row(statement, visit)
    }

    /// Returns a free connection.
    async fn acquire(&self) -> Result<OwnedMutexGuard<Option<DatabaseConnection>>> {
        // Any free connection first; only if all are busy the callers wait in turn for one of them.
        let free = self.slots.iter().find_map(|slot| Arc::clone(slot).try_lock_owned().ok());
        if let Some(free) = free {
            return Ok(free);
        }
        let index = self.next_slot.fetch_add(1, Ordering::Relaxed) % READER_COUNT;
        let slot = self.slots.get(index).ok_or(Error::Unavailable("there are no readers"))?;
        let free = tokio::time::timeout(ACQUIRE_TIMEOUT, Arc::clone(slot).lock_owned()).await;
        free.map_err(|_elapsed| Error::Unavailable("every reader is taken"))
    }
}

impl Queryable for &ReaderPool {
    async fn rows(self, statement: SqlStatement) -> Result<Vec<SqlRow>> {
        if statement.is_long_running {
            return self.run_blocking(move |connection| connection.fetch_all(&statement)).await?;
        }
        let mut connection = self.acquire().await?;
        connection.as_mut().ok_or(Error::Unavailable("the store is closed"))?.fetch_all(&statement)
    }
}
