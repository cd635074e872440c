//! Writer: takes the queued changes, commits them together, then answers each.

use std::sync::Arc;
use std::{io, mem, thread};

use algonius_actors::model::id::ExecutionId;
use algonius_actors::ports::ledger::LedgerError;
use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use super::checkpoint::Checkpointer;
use super::directory::DirectoryLock;
use super::error::{closed_error, ledger_error};
use super::read_cache::{Invalidation, ReadCache};
use super::sql::{self, DatabaseConnection, ReaderPool};

/// Maximum number of changes in one commit.
const MAX_BATCH_WRITES: usize = 256;

/// Maximum number of queued changes; further callers wait until there is room.
const QUEUE_CAPACITY: usize = 1024;

/// Change of the ledger.
///
/// The change runs again if its first commit is rolled back because of another change, so the change itself is
/// immutable; a refusal for reasons of its own is part of the answer.
#[async_trait]
pub(crate) trait WriteCommand: Send + Sync + 'static {
    /// Answer for the caller after the commit.
    type WriteOutput: Send + 'static;

    /// Returns the executions that the change may affect.
    fn invalidation(&self) -> Invalidation {
        Invalidation::Any
    }

    /// Makes the change within the open transaction.
    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<Self::WriteOutput>;
}

/// Other users of the database.
pub(crate) struct WriterDependencies {
    /// Reader connections.
    pub(crate) readers: ReaderPool,
    /// Read cache.
    pub(crate) read_cache: Arc<ReadCache>,
    /// Checkpointer of the write-ahead log.
    pub(crate) checkpointer: Checkpointer,
}

/// Handle of the writer's thread.
#[derive(Debug)]
pub(crate) struct LedgerWriter {
    write_sender: mpsc::Sender<Box<dyn QueuedWrite>>,
    stop_sender: watch::Sender<bool>,
}

impl LedgerWriter {
    /// Starts the thread. It ends after [`LedgerWriter::close`], or when the writer is dropped and all queued changes
    /// are committed. SQLite waits for the disk within its calls, so no other task runs on that thread.
    ///
    /// The thread also closes the readers and stops the checkpointer: SQLite checkpoints its log when its last
    /// connection is closed, and that must be complete before the lock is released.
    pub(crate) fn spawn(
        connection: DatabaseConnection,
        WriterDependencies { readers, read_cache, checkpointer }: WriterDependencies,
        lock: DirectoryLock,
    ) -> io::Result<Self> {
        // Bounded, so that a slow disk delays the callers instead of filling the memory.
        let (write_sender, write_receiver) = mpsc::channel(QUEUE_CAPACITY);
        let (stop_sender, stop_receiver) = watch::channel(false);
        let write_until_closed = async move {
            let mut state = WriterState { connection, read_cache };
            commit_queued(&mut state, write_receiver, stop_receiver.clone()).await;
            // The readers and the checkpointer go first: SQLite truncates the log only for the last connection.
            readers.close().await;
            checkpointer.stop().await;
            checkpoint_and_close(state.connection);
            drop(lock);
            // Last, because `close` waits for this receiver: when it returns, the next process can take the lock.
            drop(stop_receiver);
        };
        let runtime = Handle::current();
        let thread = thread::Builder::new().name("ledger".to_owned());
        thread.spawn(move || runtime.block_on(write_until_closed))?;
        Ok(Self { write_sender, stop_sender })
    }

    /// Queues a change and waits until it is committed.
    pub(crate) async fn submit<C: WriteCommand>(
        &self,
        command: C,
    ) -> Result<C::WriteOutput, LedgerError> {
        let (reply_sender, reply_receiver) = oneshot::channel();
        let write = Box::new(TypedWrite { command, output: None, reply_sender });
        self.write_sender.send(write).await.map_err(|_unsent| closed_error())?;
        reply_receiver.await.map_err(|_dropped| closed_error())?
    }

    /// Commits the queued changes, and waits until the file is closed and the directory is unlocked.
    pub(crate) async fn close(&self) {
        self.stop_sender.send_replace(true);
        self.stop_sender.closed().await;
    }
}

/// Queued change of any type.
#[async_trait]
trait QueuedWrite: Send {
    fn invalidation(&self) -> Invalidation;
    async fn apply(&mut self, connection: &mut DatabaseConnection) -> sql::Result<()>;
    fn reply(self: Box<Self>, commit_result: Result<(), LedgerError>);
}

struct TypedWrite<C: WriteCommand> {
    command: C,
    output: Option<C::WriteOutput>,
    reply_sender: oneshot::Sender<Result<C::WriteOutput, LedgerError>>,
}

#[async_trait]
impl<C: WriteCommand> QueuedWrite for TypedWrite<C> {
    fn invalidation(&self) -> Invalidation {
        self.command.invalidation()
    }

    async fn apply(&mut self, connection: &mut DatabaseConnection) -> sql::Result<()> {
        self.output = Some(self.command.apply(connection).await?);
        Ok(())
    }

    fn reply(self: Box<Self>, commit_result: Result<(), LedgerError>) {
        let Self { output, reply_sender, .. } = *self;
        // The caller may have gone; the change stays committed.
        _ = reply_sender.send(commit_result.and_then(|()| output.ok_or_else(closed_error)));
    }
}

/// Reason for the rollback of a transaction.
enum RollbackCause {
    /// One of the changes failed; the others may be valid.
    Write(sql::Error),
    /// The transaction itself could not start or commit.
    Transaction(sql::Error),
}

/// Connection of the writer and the cache of its data.
struct WriterState {
    connection: DatabaseConnection,
    read_cache: Arc<ReadCache>,
}

/// Commits queued changes until the queue is closed.
async fn commit_queued(
    state: &mut WriterState,
    mut write_receiver: mpsc::Receiver<Box<dyn QueuedWrite>>,
    mut stop_receiver: watch::Receiver<bool>,
) {
    let mut batch = Vec::new();
    loop {
        if *stop_receiver.borrow() {
            // Closing refuses new changes but still delivers the queued ones, which callers wait for.
            write_receiver.close();
        }
        let received_count = tokio::select! {
            // Takes all that wait: under load a commit covers many changes, and without load nothing is delayed.
            count = write_receiver.recv_many(&mut batch, MAX_BATCH_WRITES) => count,
            _ = stop_receiver.changed(), if !write_receiver.is_closed() => continue,
        };
        if received_count == 0 {
            return;
        }
        commit(state, mem::take(&mut batch)).await;
    }
}

/// Commits changes together; if one of them fails, commits them one by one, so that only that one fails.
async fn commit(state: &mut WriterState, mut writes: Vec<Box<dyn QueuedWrite>>) {
    match transact(&mut state.connection, &mut writes).await {
        Err(RollbackCause::Write(_)) if writes.len() > 1 => {
            for mut write in writes {
                // The rollback undid the valid changes too, so each of them runs again on its own.
                let single_write = std::slice::from_mut(&mut write);
                let commit_result = transact(&mut state.connection, single_write).await;
                invalidate_cache_and_reply(state, vec![write], commit_result).await;
            }
        }
        commit_result => invalidate_cache_and_reply(state, writes, commit_result).await,
    }
}

/// Answers the callers after the cache was invalidated.
async fn invalidate_cache_and_reply(
    state: &mut WriterState,
    writes: Vec<Box<dyn QueuedWrite>>,
    commit_result: Result<(), RollbackCause>,
) {
    let changed_ids = state.connection.take_extra_changed_ids().into_iter().map(ExecutionId);
    let write_invalidations = writes.iter().map(|write| write.invalidation());
    let invalidations: Vec<_> =
        write_invalidations.chain(changed_ids.map(Invalidation::One)).collect();
    // Before the answers: a caller that reads after its answer must not get the old value.
    state.read_cache.invalidate(invalidations).await;
    let commit_result = commit_result.map_err(|cause| {
        let (RollbackCause::Write(error) | RollbackCause::Transaction(error)) = cause;
        tracing::error!(changes = writes.len(), %error, "ledger did not commit");
        ledger_error(error)
    });
    for write in writes {
        write.reply(commit_result.clone());
    }
}

/// Runs changes in one transaction, and leaves no transaction open.
///
/// SQLite ends the transaction by itself if the disk is full; there is nothing to roll back in that case.
async fn transact(
    connection: &mut DatabaseConnection,
    writes: &mut [Box<dyn QueuedWrite>],
) -> Result<(), RollbackCause> {
    // A transaction that stays open would make every later `BEGIN` fail.
    let result = apply_and_commit(connection, writes).await;
    if result.is_err() && connection.execute_batch("ROLLBACK").is_err() {
        tracing::debug!("transaction had ended by itself");
    }
    result
}

async fn apply_and_commit(
    connection: &mut DatabaseConnection,
    writes: &mut [Box<dyn QueuedWrite>],
) -> Result<(), RollbackCause> {
    // `IMMEDIATE` takes the write lock now: a deferred transaction may fail with `SQLITE_BUSY` at its first write,
    // which the busy timeout does not cover.
    connection.execute(&sql::statement("BEGIN IMMEDIATE")).map_err(RollbackCause::Transaction)?;
    for write in writes {
        write.apply(connection).await.map_err(RollbackCause::Write)?;
    }
    connection.execute(&sql::statement("COMMIT")).map_err(RollbackCause::Transaction)?;
    Ok(())
}

fn checkpoint_and_close(mut connection: DatabaseConnection) {
    let checkpoint_result = connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
    if let Err(error) = checkpoint_result.and(connection.close()) {
        tracing::warn!(%error, "database was not closed in order; the next start will repair it");
    }
}
