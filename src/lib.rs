//! algonius-supervisor: serves any command-line AI agent as a supervised, durable A2A agent.
//!
//! This file is the composition root: the only place where a port meets its implementation.

pub mod alert;
mod app;
pub mod cli;
pub mod config;
pub mod drivers;
pub mod observe;
pub mod platform;
pub mod push;
pub mod serve;
pub mod wire;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::api::supervision_tree::SupervisionTree;
use algonius_actors::model::host::host_capabilities::HostCapabilities;
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::host_metrics::HostMetrics;
use algonius_store::Store;
use algonius_warden::memory;
use algonius_warden::process_holders::{DetachedPrograms, HolderCommand, ProcessHolders};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use algonius_warden::inherited_state::InheritedProcessState;
pub use app::start_error::StartError;

use app::observability_setup::RunningObservability;
use app::reload::ReloadHandle;
use app::startup::StartedService;
use config::{ConfigSource, Settings};
use drivers::mcp::McpServers;
use observe::Instruments;
use platform::clock::WallClock;
use platform::host_metrics::SystemMetrics;
use push::PushWorker;
use serve::http::listen::ShutdownHandle;

/// Running service.
pub struct RunningService {
    listener_address: ListenerAddress,
    tree: SupervisionTree,
    mcp_servers: McpServers,
    push_worker: Option<PushWorker>,
    observability: RunningObservability,
    store: Arc<Store>,
    process_holders: Arc<ProcessHolders>,
    shutdown_handle: ShutdownHandle,
    server_join_handle: JoinHandle<io::Result<()>>,
    reload_handle: ReloadHandle,
    reload_join_handle: JoinHandle<()>,
}

/// Address of the listener, in the forms that others need.
struct ListenerAddress {
    url: String,
    scheme: &'static str,
    address: SocketAddr,
}

/// Returns the capabilities of this machine for holding programs. May take some time.
///
/// # Errors
/// Fails if it cannot be determined now whether bubblewrap works.
pub fn host_capabilities() -> Result<HostCapabilities, StartError> {
    algonius_warden::capabilities::detect(std::env::var_os("PATH").as_deref())
        .map_err(|source| StartError::SandboxProbe { source })
}

/// Returns the OpenAPI 3.1 document of the HTTP API.
#[must_use]
pub fn openapi() -> serde_json::Value {
    serve::api::openapi_document()
}

/// Starts the service of this program on this machine.
///
/// # Errors
/// Fails if any part does not start; nothing runs then.
pub async fn start(settings: Settings) -> Result<RunningService, StartError> {
    start_with_clock(settings, Arc::new(WallClock), HolderCommand::default()).await
}

/// Starts the service of this program on this machine, with settings from a source whose changes it applies.
///
/// # Errors
/// Fails if any part does not start; nothing runs then.
pub async fn start_with_source(
    source: ConfigSource,
    settings: Settings,
) -> Result<RunningService, StartError> {
    let host_metrics = Arc::new(SystemMetrics::new(settings.server.data_dir.clone()));
    let clock_and_host_metrics = (Arc::new(WallClock) as _, host_metrics as _);
    let running =
        start_with_dependencies(source, settings, clock_and_host_metrics, HolderCommand::default())
            .await?;
    tokio::spawn(memory::keep_memory_trimmed());
    Ok(running)
}

/// Starts the service with another clock, or in another program; `holder_command` is the command that becomes a process
/// holder.
///
/// # Errors
/// Fails if any part does not start; nothing runs then.
pub async fn start_with_clock(
    settings: Settings,
    clock: Arc<dyn Clock>,
    holder_command: HolderCommand,
) -> Result<RunningService, StartError> {
    let host_metrics = Arc::new(SystemMetrics::new(settings.server.data_dir.clone()));
    start_with_host_metrics(settings, clock, host_metrics, holder_command).await
}

/// Starts the service with other host metrics. Its configuration does not change.
///
/// # Errors
/// Fails if any part does not start; nothing runs then.
pub async fn start_with_host_metrics(
    settings: Settings,
    clock: Arc<dyn Clock>,
    host_metrics: Arc<dyn HostMetrics>,
    holder_command: HolderCommand,
) -> Result<RunningService, StartError> {
    start_with_dependencies(
        ConfigSource::from_settings(settings.clone()),
        settings,
        (clock, host_metrics),
        holder_command,
    )
    .await
}

/// Starts the service with settings from a source whose changes it applies: binds the address, opens the ledger,
/// resumes or kills the processes that an earlier process instance left, recovers, starts the supervision tree, and
/// accepts connections.
///
/// # Errors
/// Fails if any part does not start; nothing runs then.
pub async fn start_with_dependencies(
    source: ConfigSource,
    mut settings: Settings,
    (clock, host_metrics): (Arc<dyn Clock>, Arc<dyn HostMetrics>),
    holder_command: HolderCommand,
) -> Result<RunningService, StartError> {
    app::file_trust::check_trust_and_close_folders(&settings, source.file())?;
    // Boxed, because this future is large and would be a part of its callers' futures.
    let started_service =
        Box::pin(StartedService::start(&mut settings, (&clock, host_metrics), holder_command))
            .await?;
    started_service.start_listening(source, settings, clock)
}

impl RunningService {
    /// Returns the URL at which callers reach the service.
    #[must_use]
    pub fn public_url(&self) -> &str {
        &self.listener_address.url
    }

    /// Returns the scheme of the listener: `http` or `https`.
    #[must_use]
    pub const fn scheme(&self) -> &'static str {
        self.listener_address.scheme
    }

    /// Returns the listen address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.listener_address.address
    }

    /// Returns the metrics and telemetry of the service.
    #[must_use]
    pub const fn instruments(&self) -> &Instruments {
        &self.observability.instruments
    }

    /// Returns a receiver of the log level of the configuration in force.
    #[must_use]
    pub fn watch_log_level(&self) -> watch::Receiver<tracing::Level> {
        self.reload_handle.watch_log_level()
    }

    /// Requests a reload of the configuration. The log and `/status` report the result.
    pub fn reload(&self, reason: &'static str) {
        self.reload_handle.reload_soon(reason);
    }

    /// Stops the service: refuses new work, lets running executions finish until the deadline, answers waiting callers,
    /// and closes the ledger.
    pub async fn stop(self, deadline: Duration) {
        let (_stop_sender, kill_receiver) = watch::channel(false);
        self.stop_or_kill(deadline, kill_receiver).await;
    }

    /// Stops like [`stop`](Self::stop), but ends everything at once when `kill_receiver` becomes true: running
    /// executions are killed and recorded as cancelled, and the service waits for nothing else.
    pub async fn stop_or_kill(self, deadline: Duration, kill_receiver: watch::Receiver<bool>) {
        self.reload_join_handle.abort();
        let kill = || self.process_holders.kill_all();
        self.tree.stop_or_kill(deadline, wait_until_true(kill_receiver.clone()), kill).await;
        self.shutdown_handle.graceful_shutdown(Some(Duration::from_secs(2)));
        let shutdown = async {
            self.mcp_servers.shut_down().await;
            if let Ok(Err(error)) = self.server_join_handle.await {
                tracing::error!(%error, "the listener had failed");
            }
            if let Some(worker) = self.push_worker {
                worker.stop().await;
            }
            self.observability.stop().await;
        };
        tokio::select! {
            () = shutdown => {}
            () = async {
                wait_until_true(kill_receiver).await;
                // Callers that wait for a killed execution still get an answer.
                tokio::time::sleep(Duration::from_secs(1)).await;
            } => {}
        }
        self.process_holders.shut_down().await;
        self.store.close().await;
    }

    /// Ends at once, before the start of a new binary: waits for nothing, leaves running programs to their process
    /// holders, and closes the ledger. The process must end right afterwards without dropping the rest.
    pub async fn hand_over(self) -> DetachedPrograms {
        self.reload_join_handle.abort();
        self.tree.start_drain().await;
        let detached_programs = self.process_holders.detach().await;
        self.shutdown_handle.shutdown();
        if let Some(worker) = self.push_worker {
            // Interrupted notifications are sent again by the next process instance.
            _ = tokio::time::timeout(Duration::from_secs(1), worker.stop()).await;
        }
        self.store.close().await;
        detached_programs
    }
}

/// Returns when the value is true; never if the sender was dropped before.
async fn wait_until_true(mut flag: watch::Receiver<bool>) {
    if flag.wait_for(|is_set| *is_set).await.is_err() {
        std::future::pending::<()>().await;
    }
}
