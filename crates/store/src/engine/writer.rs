//! Writer: takes the queued changes, commits them together, then answers each.

use std::sync::Arc;
use std::{io, mem, thread};

use algonius_actors::ports::ledger::LedgerError;
use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use super::checkpoint::Checkpointer;
use super::directory::Lock;
use super::fault::{closed, ledger_error};
use super::read_cache::{Invalidation, Recent};
use super::sql::{self, DatabaseConnection, Readers};

/// Maximum number of changes in one commit.
const BATCH: usize = 256;

/// Maximum number of queued changes; further callers wait until there is room.
const WAITING: usize = 1024;

/// Change of the ledger.
///
/// The change runs again if its first commit is rolled back because of another change, so the change itself is
/// immutable; a refusal for reasons of its own is part of the answer.
#[async_trait]
pub(crate) trait WriteCommand: Send + Sync + 'static {
    /// Answer for the caller after the commit.
    type Answer: Send + 'static;

    /// Returns the executions that the change may affect.
    fn touches(&self) -> Invalidation {
        Invalidation::Any
    }

    /// Makes the change within the open transaction.
    async fn make(&self, connection: &mut DatabaseConnection) -> sql::Result<Self::Answer>;
}

/// Other users of the database.
pub(crate) struct Others {
    /// Reader connections.
    pub(crate) readers: Readers,
    /// Read cache.
    pub(crate) recent: Arc<Recent>,
    /// Checkpointer of the write-ahead log.
    pub(crate) checkpointer: Checkpointer,
}

/// Handle of the writer's thread.
#[derive(Debug)]
pub(crate) struct LedgerWriter {
    orders: mpsc::Sender<Box<dyn QueuedWrite>>,
    stop: watch::Sender<bool>,
}

impl LedgerWriter {
    /// Starts the thread. It ends after [`Writer::close`], or when the writer is dropped and all queued changes are
    /// committed. SQLite waits for the disk within its calls, so no other task runs on that thread.
    ///
    /// The thread also closes the readers and stops the checkpointer: SQLite checkpoints its log when its last
    /// connection is closed, and that must be complete before the lock is released.
    pub(crate) fn spawn(
        connection: DatabaseConnection,
        Others { readers, recent, checkpointer }: Others,
        lock: Lock,
    ) -> io::Result<Self> {
        // Bounded, so that a slow disk delays the callers instead of filling the memory.
        let (orders, waiting) = mpsc::channel(WAITING);
        let (stop, stopped) = watch::channel(false);
        let run = async move {
            let mut state = WriterState { connection, recent };
            write(&mut state, waiting, stopped.clone()).await;
            // The readers and the checkpointer go first: SQLite truncates the log only for the last connection.
            readers.close().await;
            checkpointer.end().await;
            finish(state.connection);
            drop(lock);
            // Last, because `close` waits for this receiver: when it returns, the next process can take the lock.
            drop(stopped);
        };
        let runtime = Handle::current();
        let thread = thread::Builder::new().name("ledger".to_owned());
        thread.spawn(move || runtime.block_on(run))?;
        Ok(Self { orders, stop })
    }

    /// Queues a change and waits until it is committed.
    pub(crate) async fn order<C: WriteCommand>(&self, change: C) -> Result<C::Answer, LedgerError> {
        let (reply, answer) = oneshot::channel();
        let order = Box::new(PendingWrites { change, answer: None, reply });
        self.orders.send(order).await.map_err(|_unsent| closed())?;
        answer.await.map_err(|_dropped| closed())?
    }

    /// Commits the queued changes, and waits until the file is closed and the directory is unlocked.
    pub(crate) async fn close(&self) {
        self.stop.send_replace(true);
        self.stop.closed().await;
    }
}

/// Queued change of any type.
#[async_trait]
trait QueuedWrite: Send {
    fn touches(&self) -> Invalidation;
    async fn run(&mut self, connection: &mut DatabaseConnection) -> sql::Result<()>;
    fn reply(self: Box<Self>, committed: Result<(), LedgerError>);
}

struct PendingWrites<C: WriteCommand> {
    change: C,
    answer: Option<C::Answer>,
    reply: oneshot::Sender<Result<C::Answer, LedgerError>>,
}

#[async_trait]
impl<C: WriteCommand> QueuedWrite for PendingWrites<C> {
    fn touches(&self) -> Invalidation {
        self.change.touches()
    }

    async fn run(&mut self, connection: &mut DatabaseConnection) -> sql::Result<()> {
        self.answer = Some(self.change.make(connection).await?);
        Ok(())
    }

    fn reply(self: Box<Self>, committed: Result<(), LedgerError>) {
        let Self { answer, reply, .. } = *self;
        // The caller may have gone; the change stays committed.
        _ = reply.send(committed.and_then(|()| answer.ok_or_else(closed)));
    }
}

/// Reason for the rollback of a transaction.
enum RollbackCause {
    /// One of the changes failed; the others may be valid.
    Change(sql::Error),
    /// The transaction itself could not start or commit.
    Commit(sql::Error),
}

/// Connection of the writer and the cache of its data.
struct WriterState {
    connection: DatabaseConnection,
    recent: Arc<Recent>,
}

/// Commits queued changes until the queue is closed.
async fn write(
    state: &mut WriterState,
    mut orders: mpsc::Receiver<Box<dyn QueuedWrite>>,
    mut stop: watch::Receiver<bool>,
) {
    let mut batch = Vec::new();
    loop {
        if *stop.borrow() {
            // Closing refuses new changes but still delivers the queued ones, which callers wait for.
            orders.close();
        }
        let taken = tokio::select! {
            // Takes all that wait: under load a commit covers many changes, and without load nothing is delayed.
            taken = orders.recv_many(&mut batch, BATCH) => taken,
            _ = stop.changed(), if !orders.is_closed() => continue,
        };
        if taken == 0 {
            return;
        }
        commit(state, mem::take(&mut batch)).await;
    }
}

/// Commits changes together; if one of them fails, commits them one by one, so that only that one fails.
async fn commit(state: &mut WriterState, mut orders: Vec<Box<dyn QueuedWrite>>) {
    match transact(&mut state.connection, &mut orders).await {
        Err(RollbackCause::Change(_)) if orders.len() > 1 => {
            for mut order in orders {
                // The rollback undid the valid changes too, so each of them runs again on its own.
                let one = std::slice::from_mut(&mut order);
                let committed = transact(&mut state.connection, one).await;
                reply_all(&state.recent, vec![order], committed).await;
            }
        }
        committed => reply_all(&state.recent, orders, committed).await,
    }
}

/// Answers the callers after the cache was invalidated.
async fn reply_all(
    recent: &Recent,
    orders: Vec<Box<dyn QueuedWrite>>,
    committed: Result<(), RollbackCause>,
) {
    let touched: Vec<_> = orders.iter().map(|order| order.touches()).collect();
    // Before the answers: a caller that reads after its answer must not get the old value.
    recent.forget(touched).await;
    let committed = committed.map_err(|undone| {
        let (RollbackCause::Change(error) | RollbackCause::Commit(error)) = undone;
        tracing::error!(changes = orders.len(), %error, "ledger did not commit");
        ledger_error(error)
    });
    for order in orders {
        order.reply(committed.clone());
    }
}

/// Runs changes in one transaction, and leaves no transaction open.
///
/// SQLite ends the transaction by itself if the disk is full; there is nothing to roll back in that case.
async fn transact(
    connection: &mut DatabaseConnection,
    orders: &mut [Box<dyn QueuedWrite>],
) -> Result<(), RollbackCause> {
    // A transaction that stays open would make every later `BEGIN` fail.
    let done = attempt(connection, orders).await;
    if done.is_err() && connection.batch("ROLLBACK").is_err() {
        tracing::debug!("transaction had ended by itself");
    }
    done
}

async fn attempt(
    connection: &mut DatabaseConnection,
    orders: &mut [Box<dyn QueuedWrite>],
) -> Result<(), RollbackCause> {
    // `IMMEDIATE` takes the write lock now: a deferred transaction may fail with `SQLITE_BUSY` at its first write,
    // which the busy timeout does not cover.
    connection.change(&sql::query("BEGIN IMMEDIATE")).map_err(RollbackCause::Commit)?;
    for order in orders {
        order.run(connection).await.map_err(RollbackCause::Change)?;
    }
    connection.change(&sql::query("COMMIT")).map_err(RollbackCause::Commit)?;
    Ok(())
}

fn finish(mut connection: DatabaseConnection) {
    let checkpoint = connection.batch("PRAGMA wal_checkpoint(TRUNCATE)");
    if let Err(error) = checkpoint.and(connection.close()) {
        tracing::warn!(%error, "database was not closed in order; the next start will repair it");
    }
}
