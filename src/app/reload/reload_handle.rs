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

use crate::serve::ops::admin::{Administration, ListedToken, SwitchResult, TokenSpec};
use crate::wire::admin::{ConfigurationStatus, CreatedToken, ReloadResult};

/// Greatest number of queued requests; the sender of a further one waits.
const QUEUE_CAPACITY: usize = 64;

/// Request to the reload task.
pub(super) enum AdminRequest {
    Reload(&'static str, oneshot::Sender<Result<ReloadResult, Failure>>),
    SwitchAgent(AgentId, bool, oneshot::Sender<Result<SwitchResult, Failure>>),
    CreateToken(Box<TokenSpec>, oneshot::Sender<Result<CreatedToken, Failure>>),
    RevokeToken(String, oneshot::Sender<Result<(), Failure>>),
    RotateOperatorToken(oneshot::Sender<Result<(), Failure>>),
}

/// Handle that sends requests of an administrator. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ReloadHandle {
    requests: mpsc::Sender<AdminRequest>,
    status: watch::Receiver<ConfigurationStatus>,
    log_level: watch::Receiver<Level>,
    store: Arc<Store>,
    /// File of the configuration; `None` for the shipped one.
    config_file: Option<Arc<PathBuf>>,
}

/// Receiver of the requests, and publisher of the configuration in force.
pub(crate) struct ReloaderChannels {
    pub(super) requests: mpsc::Receiver<AdminRequest>,
    pub(super) status: watch::Sender<ConfigurationStatus>,
    pub(super) log_level: watch::Sender<Level>,
}

/// Creates a handle for the configuration in `file`, and the state that receives its requests. `level` is the initial
/// log level.
pub(crate) fn channel(
    store: &Arc<Store>,
    level: Level,
    file: Option<&Path>,
) -> (ReloadHandle, ReloaderChannels) {
    let (sender, requests) = mpsc::channel(QUEUE_CAPACITY);
    let (status, status_receiver) = watch::channel(ConfigurationStatus::default());
    let (log_level, log_level_receiver) = watch::channel(level);
    let store = Arc::clone(store);
    let file = file.map(|file| Arc::new(file.to_owned()));
    let reload_handle = ReloadHandle {
        requests: sender,
        status: status_receiver,
        log_level: log_level_receiver,
        store,
        config_file: file,
    };
    (reload_handle, ReloaderChannels { requests, status, log_level })
}

impl ReloadHandle {
    /// Requests a reload, and does not wait for the result, which the log reports.
    pub(crate) fn reload_soon(&self, reason: &'static str) {
        let (reply, _) = oneshot::channel();
        if self.requests.try_send(AdminRequest::Reload(reason, reply)).is_err() {
            tracing::warn!("too many queued reload requests");
        }
    }

    /// Returns a receiver of the log level in force.
    pub(crate) fn watch_log_level(&self) -> watch::Receiver<Level> {
        self.log_level.clone()
    }

    async fn request<T>(
        &self,
        build_request: impl FnOnce(oneshot::Sender<T>) -> AdminRequest,
    ) -> Result<T, Failure> {
        let (reply, response) = oneshot::channel();
        let stopping_failure = || Failure::new(Code::Draining, "the service is stopping");
        self.requests.send(build_request(reply)).await.map_err(|_closed| stopping_failure())?;
        response.await.map_err(|_dropped| stopping_failure())
    }
}

#[async_trait]
impl Administration for ReloadHandle {
    async fn reload(&self) -> Result<ReloadResult, Failure> {
        self.request(|reply| AdminRequest::Reload("requested by an administrator", reply)).await?
    }

    fn configuration_status(&self) -> ConfigurationStatus {
        self.status.borrow().clone()
    }

    fn reads_config_file(&self, file: Option<&Path>) -> bool {
        let real = |file: &Path| fs::canonicalize(file).ok();
        match (file, self.config_file.as_deref()) {
            (None, None) => true,
            (Some(file), Some(own_file)) => {
                real(file).is_some_and(|file| real(own_file) == Some(file))
            }
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    async fn switch_agent(&self, agent: AgentId, enabled: bool) -> Result<SwitchResult, Failure> {
        self.request(|reply| AdminRequest::SwitchAgent(agent, enabled, reply)).await?
    }

    async fn list_tokens(&self) -> Result<Vec<ListedToken>, Failure> {
        let stored_tokens = self
            .store
            .list_tokens()
            .await
            .map_err(|error| super::token_administration::ledger_failure(&error))?;
        Ok(super::token_administration::listed_tokens(stored_tokens))
    }

    async fn create_token(&self, spec: TokenSpec) -> Result<CreatedToken, Failure> {
        self.request(|reply| AdminRequest::CreateToken(Box::new(spec), reply)).await?
    }

    async fn revoke_token(&self, name: String) -> Result<(), Failure> {
        self.request(|reply| AdminRequest::RevokeToken(name, reply)).await?
    }

    async fn rotate_operator_token(&self) -> Result<(), Failure> {
        self.request(AdminRequest::RotateOperatorToken).await?
    }
}
