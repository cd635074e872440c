//! A few connections that read, beside the one that writes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};

use super::{Access, Asked, Connection, Error, Passing, Query, Result, Row};

/// How long a reader waits for a connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connections of readers.
const COUNT: usize = 4;

/// A connection, until it is closed.
type Slot = Arc<Mutex<Option<Connection>>>;

/// The readers of one database.
///
/// A row or a page of rows that an index finds is read where it is asked for: that takes microseconds,
/// and handing it to another thread takes longer. What may look at much says so ([`Query::apart`]).
#[derive(Debug, Clone)]
pub(in crate::store) struct Readers {
    slots: Arc<[Slot]>,
    next: Arc<AtomicUsize>,
}

impl Readers {
    /// Opens them. The connection that writes must be open.
    pub(in crate::store) fn open(database: &Path, busy: Duration) -> Result<Self> {
        let slot =
            |_| Ok(Slot::new(Mutex::new(Some(Connection::open(database, Access::Read, busy)?))));
        let slots = (0..COUNT).map(slot).collect::<Result<_>>()?;
        Ok(Self { slots, next: Arc::default() })
    }

    /// Runs statements of one moment on a thread where nothing else waits.
    pub(in crate::store) async fn at_once<const N: usize>(
        &self,
        queries: [Query; N],
    ) -> Result<[Vec<Row>; N]> {
        let answers = self.with(move |connection| {
            connection.batch("BEGIN")?;
            let answers = queries.iter().map(|query| connection.read(query)).collect();
            connection.batch("ROLLBACK")?;
            answers
        });
        let answers: Result<Vec<_>> = answers.await?;
        answers?.try_into().map_err(|_fewer| Error::Away("an answer is missing"))
    }

    /// Waits until none of them reads, and closes them. Whoever asks later is told so.
    pub(in crate::store) async fn close(&self) {
        for slot in &*self.slots {
            drop(slot.lock().await.take());
        }
    }

    /// Does something with one of them on a thread where nothing else waits.
    async fn with<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Connection) -> T + Send + 'static,
    ) -> Result<T> {
        let mut free = self.free().await?;
        let done = tokio::task::spawn_blocking(move || free.as_mut().map(act)).await;
        done.ok().flatten().ok_or(Error::Away("the store is closed"))
    }

    /// Gives each row of a statement as it passes by, where it is asked for.
    pub(super) async fn each(
        &self,
        query: &Query,
        take: impl FnMut(Passing<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut free = self.free().await?;
        free.as_mut().ok_or(Error::Away("the store is closed"))?.pass(query, take)
    }

    /// One that nobody uses.
    async fn free(&self) -> Result<OwnedMutexGuard<Option<Connection>>> {
        let free = self.slots.iter().find_map(|slot| Arc::clone(slot).try_lock_owned().ok());
        if let Some(free) = free {
            return Ok(free);
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed) % COUNT;
        let slot = self.slots.get(number).ok_or(Error::Away("there are no readers"))?;
        let free = tokio::time::timeout(PATIENCE, Arc::clone(slot).lock_owned()).await;
        free.map_err(|_elapsed| Error::Away("every reader is taken"))
    }
}

impl Asked for &Readers {
    async fn rows(self, query: Query) -> Result<Vec<Row>> {
        if query.is_apart {
            return self.with(move |connection| connection.read(&query)).await?;
        }
        let mut free = self.free().await?;
        free.as_mut().ok_or(Error::Away("the store is closed"))?.read(&query)
    }
}
