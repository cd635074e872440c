//! The way to the reloader, for whoever has a door to it.

use std::sync::Arc;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use algonius_actors::ports::ledger::LedgerError;
use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::Level;

use crate::serve::admin::{Admin, Known, Switching, Wanted};
use crate::store::Store;
use crate::wire::admin::{ConfigurationStatus, Reloaded, TokenMade};

/// Orders that may wait; whoever brings one more waits with it.
const WAITING: usize = 64;

/// What is ordered of the reloader.
pub(super) enum Order {
    Reload(&'static str, oneshot::Sender<Result<Reloaded, Failure>>),
    Switch(AgentId, bool, oneshot::Sender<Result<Switching, Failure>>),
    Make(Box<Wanted>, oneshot::Sender<Result<TokenMade, Failure>>),
    Revoke(String, oneshot::Sender<Result<(), Failure>>),
    Rotate(oneshot::Sender<Result<(), Failure>>),
}

/// Orders what an administrator wants. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Steward {
    orders: mpsc::Sender<Order>,
    status: watch::Receiver<ConfigurationStatus>,
    levels: watch::Receiver<Level>,
    store: Arc<Store>,
}

/// Where orders arrive, and where it is told what is in force.
pub(crate) struct Desk {
    pub(super) orders: mpsc::Receiver<Order>,
    pub(super) status: watch::Sender<ConfigurationStatus>,
    pub(super) levels: watch::Sender<Level>,
}

/// A steward, and the desk that its orders come to; the log is of this level.
pub(crate) fn desk(store: &Arc<Store>, level: Level) -> (Steward, Desk) {
    let (sender, orders) = mpsc::channel(WAITING);
    let (status, shown) = watch::channel(ConfigurationStatus::default());
    let (levels, heard) = watch::channel(level);
    let store = Arc::clone(store);
    let steward = Steward { orders: sender, status: shown, levels: heard, store };
    (steward, Desk { orders, status, levels })
}

impl Steward {
    /// Has the configuration read again, and does not wait for what comes of it: the log tells.
    pub(crate) fn reload_soon(&self, why: &'static str) {
        let (reply, _) = oneshot::channel();
        if self.orders.try_send(Order::Reload(why, reply)).is_err() {
            tracing::warn!("too many orders wait already");
        }
    }

    /// The level of the log that is in force.
    pub(crate) fn levels(&self) -> watch::Receiver<Level> {
        self.levels.clone()
    }

    async fn ask<T>(&self, order: impl FnOnce(oneshot::Sender<T>) -> Order) -> Result<T, Failure> {
        let (reply, answer) = oneshot::channel();
        let stopping = || Failure::new(Code::Draining, "the service is stopping");
        self.orders.send(order(reply)).await.map_err(|_closed| stopping())?;
        answer.await.map_err(|_dropped| stopping())
    }
}

#[async_trait]
impl Admin for Steward {
    async fn reload(&self) -> Result<Reloaded, Failure> {
        self.ask(|reply| Order::Reload("an administrator asked for it", reply)).await?
    }

    fn configuration(&self) -> ConfigurationStatus {
        self.status.borrow().clone()
    }

    async fn switch(&self, agent: AgentId, on: bool) -> Result<Switching, Failure> {
        self.ask(|reply| Order::Switch(agent, on, reply)).await?
    }

    async fn tokens(&self) -> Result<Vec<Known>, Failure> {
        let known = self.store.known_tokens().await.map_err(|error| unread(&error))?;
        Ok(super::tokens::shown(known))
    }

    async fn make(&self, wanted: Wanted) -> Result<TokenMade, Failure> {
        self.ask(|reply| Order::Make(Box::new(wanted), reply)).await?
    }

    async fn revoke(&self, name: String) -> Result<(), Failure> {
        self.ask(|reply| Order::Revoke(name, reply)).await?
    }

    async fn rotate(&self) -> Result<(), Failure> {
        self.ask(Order::Rotate).await?
    }
}

/// The ledger did not do it.
pub(super) fn unread(error: &LedgerError) -> Failure {
    tracing::error!(%error, "the ledger did not do what tokens need");
    Failure::new(Code::LedgerUnavailable, "the ledger could not be reached")
}
