//! The one writer: takes the changes that wait, commits them together, then answers each.

use std::sync::Arc;
use std::{io, mem, thread};

use algonius_actors::ports::ledger::LedgerError;
use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use super::directory::Lock;
use super::fault::{closed, ledger_error};
use super::folding::Folding;
use super::recent::{Recent, Touched};
use super::sql::{self, Connection, Readers};

/// Changes of one commit, at most.
const BATCH: usize = 256;

/// Changes that may wait; whoever brings one more waits with it.
const WAITING: usize = 1024;

/// A change of the ledger.
///
/// It is made again when its first commit is given up because of another change, so it is only
/// read; what it could not do for reasons of its own, it says in its answer.
#[async_trait]
pub(super) trait Change: Send + Sync + 'static {
    /// What the caller hears once the change is committed.
    type Answer: Send + 'static;

    /// Of which executions it may change something.
    fn touches(&self) -> Touched {
        Touched::Any
    }

    /// Makes the change within the open transaction.
    async fn make(&self, connection: &mut Connection) -> sql::Result<Self::Answer>;
}

/// Who else knows of what is written.
pub(super) struct Others {
    /// Read it.
    pub(super) readers: Readers,
    /// Has it in memory.
    pub(super) recent: Arc<Recent>,
    /// Folds the log in.
    pub(super) folding: Folding,
}

/// The way to the writer's thread.
#[derive(Debug)]
pub(super) struct Writer {
    orders: mpsc::Sender<Box<dyn Order>>,
    stop: watch::Sender<bool>,
}

impl Writer {
    /// Starts the thread. It ends on [`Writer::close`], or when the writer is dropped and all that
    /// was ordered is committed. SQLite waits for the disk within its calls, so nothing else waits
    /// on that thread.
    ///
    /// The readers are closed with it, and nobody folds: SQLite folds its log in when its last connection
    /// goes, and that must be over when the lock goes.
    pub(super) fn spawn(
        connection: Connection,
        Others { readers, recent, folding }: Others,
        lock: Lock,
    ) -> io::Result<Self> {
        let (orders, waiting) = mpsc::channel(WAITING);
        let (stop, stopped) = watch::channel(false);
        let life = async move {
            let mut pages = Pages { connection, recent };
            write(&mut pages, waiting, stopped.clone()).await;
            readers.close().await;
            folding.end().await;
            finish(pages.connection);
            drop(lock);
            drop(stopped);
        };
        let runtime = Handle::current();
        let thread = thread::Builder::new().name("ledger".to_owned());
        thread.spawn(move || runtime.block_on(life))?;
        Ok(Self { orders, stop })
    }

    /// Orders a change, and waits until it is committed.
    pub(super) async fn order<C: Change>(&self, change: C) -> Result<C::Answer, LedgerError> {
        let (reply, answer) = oneshot::channel();
        let order = Box::new(Pending { change, answer: None, reply });
        self.orders.send(order).await.map_err(|_unsent| closed())?;
        answer.await.map_err(|_dropped| closed())?
    }

    /// Commits what was ordered, and waits until the file is closed and the directory unlocked.
    pub(super) async fn close(&self) {
        self.stop.send_replace(true);
        self.stop.closed().await;
    }
}

/// An order, whatever its change.
#[async_trait]
trait Order: Send {
    fn touches(&self) -> Touched;
    async fn run(&mut self, connection: &mut Connection) -> sql::Result<()>;
    fn reply(self: Box<Self>, committed: Result<(), LedgerError>);
}

struct Pending<C: Change> {
    change: C,
    answer: Option<C::Answer>,
    reply: oneshot::Sender<Result<C::Answer, LedgerError>>,
}

#[async_trait]
impl<C: Change> Order for Pending<C> {
    fn touches(&self) -> Touched {
        self.change.touches()
    }

    async fn run(&mut self, connection: &mut Connection) -> sql::Result<()> {
        self.answer = Some(self.change.make(connection).await?);
        Ok(())
    }

    fn reply(self: Box<Self>, committed: Result<(), LedgerError>) {
        let Self { answer, reply, .. } = *self;
        // Whoever asked may have gone; the change holds all the same.
        _ = reply.send(committed.and_then(|()| answer.ok_or_else(closed)));
    }
}

/// Why a transaction was rolled back.
enum Undone {
    /// One of its changes failed; the others may be good.
    Change(sql::Error),
    /// The transaction itself could not begin or commit.
    Commit(sql::Error),
}

/// What is written, and what is known of it elsewhere.
struct Pages {
    connection: Connection,
    recent: Arc<Recent>,
}

/// Commits what is ordered, until there will be no more.
async fn write(
    pages: &mut Pages,
    mut orders: mpsc::Receiver<Box<dyn Order>>,
    mut stop: watch::Receiver<bool>,
) {
    let mut batch = Vec::new();
    loop {
        if *stop.borrow() {
            orders.close();
        }
        let taken = tokio::select! {
            taken = orders.recv_many(&mut batch, BATCH) => taken,
            _ = stop.changed(), if !orders.is_closed() => continue,
        };
        if taken == 0 {
            return;
        }
        commit(pages, mem::take(&mut batch)).await;
    }
}

/// Commits orders together; one by one when one of them fails, so that it fails alone.
async fn commit(pages: &mut Pages, mut orders: Vec<Box<dyn Order>>) {
    match transact(&mut pages.connection, &mut orders).await {
        Err(Undone::Change(_)) if orders.len() > 1 => {
            for mut order in orders {
                let one = std::slice::from_mut(&mut order);
                let committed = transact(&mut pages.connection, one).await;
                reply_all(&pages.recent, vec![order], committed).await;
            }
        }
        committed => reply_all(&pages.recent, orders, committed).await,
    }
}

/// Answers, once nobody is told any more what was before.
async fn reply_all(recent: &Recent, orders: Vec<Box<dyn Order>>, committed: Result<(), Undone>) {
    let touched: Vec<_> = orders.iter().map(|order| order.touches()).collect();
    recent.forget(touched).await;
    let committed = committed.map_err(|undone| {
        let (Undone::Change(error) | Undone::Commit(error)) = undone;
        tracing::error!(changes = orders.len(), %error, "ledger did not commit");
        ledger_error(error)
    });
    for order in orders {
        order.reply(committed.clone());
    }
}

/// Runs orders in one transaction, and leaves none open.
///
/// SQLite ends it by itself when the disk is full; there is none to roll back then.
async fn transact(
    connection: &mut Connection,
    orders: &mut [Box<dyn Order>],
) -> Result<(), Undone> {
    let done = attempt(connection, orders).await;
    if done.is_err() && connection.batch("ROLLBACK").is_err() {
        tracing::debug!("transaction had ended by itself");
    }
    done
}

async fn attempt(connection: &mut Connection, orders: &mut [Box<dyn Order>]) -> Result<(), Undone> {
    connection.change(&sql::query("BEGIN IMMEDIATE")).map_err(Undone::Commit)?;
    for order in orders {
        order.run(connection).await.map_err(Undone::Change)?;
    }
    connection.change(&sql::query("COMMIT")).map_err(Undone::Commit)?;
    Ok(())
}

fn finish(mut connection: Connection) {
    let checkpoint = connection.batch("PRAGMA wal_checkpoint(TRUNCATE)");
    if let Err(error) = checkpoint.and(connection.close()) {
        tracing::warn!(%error, "database was not closed in order; the next start will repair it");
    }
}
