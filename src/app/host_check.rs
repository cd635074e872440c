//! Check of the preconditions of all executions: the folders of the service, and its process holder.

use std::io;
use std::sync::Arc;

use algonius_actors::model::host::host_fault::HostFault;
use algonius_actors::ports::host_check::HostCheck;
use algonius_store::Store;
use algonius_warden::process_holders::ProcessHolders;
use async_trait::async_trait;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use crate::app::input_sealer::RuntimeKeyFile;
use crate::drivers::program::context::SharedDriverContext;

/// Folders of the service, with their contents.
pub(crate) struct HostCheckTargets {
    /// Context with the runtime folder.
    pub(crate) context: Arc<SharedDriverContext>,
    /// Ledger in the data folder.
    pub(crate) store: Arc<Store>,
    /// Key of sealed inputs in the runtime folder, if there is one.
    pub(crate) runtime_key: Option<RuntimeKeyFile>,
    /// Process holders, with their sockets in the runtime folder.
    pub(crate) holders: Arc<ProcessHolders>,
}

/// Check of the service. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ServiceHostCheck {
    targets: Arc<HostCheckTargets>,
    /// Held during a check, so that only one restores the runtime folder.
    latest_check: Arc<Mutex<LatestCheck>>,
}

/// Results of the latest check.
#[derive(Default)]
struct LatestCheck {
    /// Start time and result, if there was a check.
    result: Option<(Instant, Vec<HostFault>)>,
    /// Report on the runtime folder. The same report is logged once.
    folder_report: Option<String>,
}

impl ServiceHostCheck {
    pub(crate) fn new(targets: HostCheckTargets) -> Self {
        Self { targets: Arc::new(targets), latest_check: Arc::default() }
    }

    async fn check(self) -> Vec<HostFault> {
        let requested_at = Instant::now();
        let mut latest = self.latest_check.lock().await;
        // One check answers all requests that waited for its start: anybody may request `/ready`.
        if let Some((started_at, faults)) = &latest.result
            && *started_at >= requested_at
        {
            return faults.clone();
        }
        let started_at = Instant::now();
        let checks = [
            (self.ensure_runtime_folder(&mut latest).await, HostFault::RuntimeFolder),
            (self.has_data_folder().await, HostFault::DataFolder),
            (self.targets.holders.retry_failed_start().await, HostFault::ProcessHolder),
        ];
        let failed = checks.into_iter().filter(|(is_fulfilled, _)| !is_fulfilled);
        let faults: Vec<_> = failed.map(|(_, fault)| fault).collect();
        latest.result = Some((started_at, faults.clone()));
        faults
    }

    /// Returns true if executions can have folders in the runtime folder. Restores it if a part of it was removed.
    async fn ensure_runtime_folder(&self, latest: &mut LatestCheck) -> bool {
        let targets = Arc::clone(&self.targets);
        let (report, is_usable) =
            match spawn_blocking(move || targets.is_runtime_folder_complete()).await {
                Ok(Ok(true)) => (None, true),
                Ok(Ok(false)) => match self.restore_runtime_folder().await {
                    Ok(()) => (
                        Some("it, or a file in it, was removed, and was created again".to_owned()),
                        true,
                    ),
                    Err(error) => (
                        Some(format!(
                            "it, or a file in it, was removed, and cannot be created again: {error}"
                        )),
                        false,
                    ),
                },
                Ok(Err(error)) => (Some(format!("it cannot be used: {error}")), false),
                Err(error) => (Some(format!("its check failed: {error}")), false),
            };
        if let Some(report) =
            report.as_ref().filter(|report| latest.folder_report.as_ref() != Some(report))
        {
            tracing::warn!(report, "runtime folder");
        }
        latest.folder_report = report;
        is_usable
    }

    async fn restore_runtime_folder(&self) -> io::Result<()> {
        self.targets.holders.restore_runtime_folder().await?;
        let targets = Arc::clone(&self.targets);
        let restored = spawn_blocking(move || {
            targets.context.create_sandbox_files()?;
            targets.runtime_key.as_ref().map_or(Ok(()), RuntimeKeyFile::restore)
        });
        restored.await.map_err(io::Error::other)?
    }

    async fn has_data_folder(&self) -> bool {
        let targets = Arc::clone(&self.targets);
        spawn_blocking(move || targets.store.is_database_in_place()).await.unwrap_or(false)
    }
}

impl HostCheckTargets {
    /// Returns true if the runtime folder is complete. Blocks on the file system.
    ///
    /// # Errors
    /// Fails if it cannot be examined, or cannot be written.
    fn is_runtime_folder_complete(&self) -> io::Result<bool> {
        let is_complete = self.holders.is_runtime_folder_intact()?
            && self.context.has_sandbox_files()
            && self.runtime_key.as_ref().is_none_or(RuntimeKeyFile::is_in_place);
        if is_complete {
            self.context.check_runtime_folder()?;
        }
        Ok(is_complete)
    }
}

#[async_trait]
impl HostCheck for ServiceHostCheck {
    async fn repair_and_find_faults(&self) -> Vec<HostFault> {
        // In a task of its own, because a caller that no longer waits must not stop a restoration half-way.
        let check = tokio::spawn(self.clone().check());
        check.await.unwrap_or_else(|error| {
            tracing::error!(%error, "the check of the service failed");
            Vec::new()
        })
    }
}
