//! Handle of the reload task for its administrators.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use algonius_store::Store;
use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::Level;

use crate::serve::ops::admin::{Admin, ListedToken, Switching, Wanted};
use crate::wire::admin::{ConfigurationStatus, CreatedToken, Reloaded};

/// Greatest number of queued orders; the sender of a further one waits.
const WAITING: usize = 64;

/// Order for the reload task.
pub(super) enum ReloadOrder {
    Reload(&'static str, oneshot::Sender<Result<Reloaded, Failure>>),
    Switch(AgentId, bool, oneshot::Sender<Result<Switching, Failure>>),
    Make(Box<Wanted>, oneshot::Sender<Result<CreatedToken, Failure>>),
    Revoke(String, oneshot::Sender<Result<(), Failure>>),
    Rotate(oneshot::Sender<Result<(), Failure>>),
}

/// Handle that sends orders of an administrator. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ReloadHandle {
    orders: mpsc::Sender<ReloadOrder>,
    status: watch::Receiver<ConfigurationStatus>,
    levels: watch::Receiver<Level>,
    store: Arc<Store>,
    /// File of the configuration; `None` for the shipped one.
    file: Option<Arc<PathBuf>>,
}

/// Receiver of the orders, and publisher of the configuration in force.
pub(crate) struct ReloadState {
    pub(super) orders: mpsc::Receiver<ReloadOrder>,
    pub(super) status: watch::Sender<ConfigurationStatus>,
    pub(super) levels: watch::Sender<Level>,
}

/// Creates a handle for the configuration in `file`, and the state that receives its orders. `level` is the initial log
/// level.
pub(crate) fn channel(
    store: &Arc<Store>,
    level: Level,
    file: Option<&Path>,
) -> (ReloadHandle, ReloadState) {
    let (sender, orders) = mpsc::channel(WAITING);
    let (status, shown) = watch::channel(ConfigurationStatus::default());
    let (levels, heard) = watch::channel(level);
    let store = Arc::clone(store);
    let file = file.map(|file| Arc::new(file.to_owned()));
    let steward = ReloadHandle { orders: sender, status: shown, levels: heard, store, file };
    (steward, ReloadState { orders, status, levels })
}

impl ReloadHandle {
    /// Requests a reload, and does not wait for the result, which the log reports.
    pub(crate) fn reload_soon(&self, why: &'static str) {
        let (reply, _) = oneshot::channel();
        if self.orders.try_send(ReloadOrder::Reload(why, reply)).is_err() {
            tracing::warn!("too many queued reload requests");
        }
    }

    /// Returns the log level in force.
    pub(crate) fn levels(&self) -> watch::Receiver<Level> {
        self.levels.clone()
    }

    async fn request<T>(
        &self,
        order: impl FnOnce(oneshot::Sender<T>) -> ReloadOrder,
    ) -> Result<T, Failure> {
        let (reply, answer) = oneshot::channel();
        let stopping = || Failure::new(Code::Draining, "the service is stopping");
        self.orders.send(order(reply)).await.map_err(|_closed| stopping())?;
        answer.await.map_err(|_dropped| stopping())
    }
}

#[async_trait]
impl Admin for ReloadHandle {
    async fn reload(&self) -> Result<Reloaded, Failure> {
        self.request(|reply| ReloadOrder::Reload("requested by an administrator", reply)).await?
    }

    fn configuration(&self) -> ConfigurationStatus {
        self.status.borrow().clone()
    }

    fn reads(&self, file: Option<&Path>) -> bool {
        let real = |file: &Path| fs::canonicalize(file).ok();
        match (file, self.file.as_deref()) {
            (None, None) => true,
            (Some(file), Some(ours)) => real(file).is_some_and(|file| real(ours) == Some(file)),
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    async fn switch(&self, agent: AgentId, on: bool) -> Result<Switching, Failure> {
        self.request(|reply| ReloadOrder::Switch(agent, on, reply)).await?
    }

    async fn tokens(&self) -> Result<Vec<ListedToken>, Failure> {
        let known =
            self.store.known_tokens().await.map_err(|error| super::tokens::unread(&error))?;
        Ok(super::tokens::shown(known))
    }

    async fn make(&self, wanted: Wanted) -> Result<CreatedToken, Failure> {
        self.request(|reply| ReloadOrder::Make(Box::new(wanted), reply)).await?
    }

    async fn revoke(&self, name: String) -> Result<(), Failure> {
        self.request(|reply| ReloadOrder::Revoke(name, reply)).await?
    }

    async fn rotate(&self) -> Result<(), Failure> {
        self.request(ReloadOrder::Rotate).await?
    }
}
