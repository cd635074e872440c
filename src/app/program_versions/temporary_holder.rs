//! Requests the versions of programs without a running service: for `algonius doctor` and `algonius agents add`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs, io};

use algonius_actors::model::host::host_capabilities::HostCapabilities;
use algonius_actors::ports::session_store::NoopSessionStore;
use algonius_warden::confinement::socket_search::EscapeSocketSearch;
use algonius_warden::confinement::sockets::EscapeSocketLocations;
use algonius_warden::process_holders::{HolderCommand, ProcessHolderOptions, ProcessHolders};
use algonius_warden::{OutputMemory, capabilities};
use uuid::Uuid;

use super::VersionRequester;
use crate::app::confinement::protected_files;
use crate::config::ServiceFiles;
use crate::drivers::program::context::{DriverSettings, SharedDriverContext};
use crate::drivers::program::service_paths::ServicePaths;
use crate::platform::temporary_folder::temporary_folder;

/// Memory for the output of programs; a version needs only a few bytes.
const OUTPUT_MEMORY_BYTES: u64 = 16 << 20;

/// Process holder with a runtime folder of its own. [`Self::shut_down`] removes both.
pub(crate) struct TemporaryHolder {
    requester: VersionRequester,
    holders: Arc<ProcessHolders>,
    runtime_dir: PathBuf,
}

impl TemporaryHolder {
    /// Starts the holder. Programs may not reach these files of the service.
    ///
    /// # Errors
    /// Fails if the system does not provide it.
    pub(crate) async fn start(
        capabilities: &HostCapabilities,
        files: &ServiceFiles,
    ) -> io::Result<Self> {
        let runtime_dir = temporary_folder().join(format!("algonius-probe-{}", Uuid::new_v4()));
        let holders = ProcessHolders::start(ProcessHolderOptions {
            command: HolderCommand::default(),
            runtime_dir: runtime_dir.clone(),
            data_dir_id: Uuid::new_v4(),
            reattach_grace: Duration::ZERO,
            control_groups: None,
            output_memory: OutputMemory::with_limit(OUTPUT_MEMORY_BYTES),
        });
        let holders = holders.await?;
        let driver_settings = DriverSettings {
            runtime_dir: runtime_dir.clone(),
            escape_sockets: Arc::new(EscapeSocketSearch::new(
                EscapeSocketLocations::from_env(&|name| env::var_os(name)),
                capabilities.sockets.clone(),
            )),
            bubblewrap: capabilities::find_bubblewrap(env::var_os("PATH").as_deref())
                .filter(|_| capabilities.sandbox_capabilities().bubblewrap),
            is_runtime_dir_in_memory: false,
        };
        let shared_context = SharedDriverContext::new(
            driver_settings,
            Arc::new(ServicePaths::new(protected_files(files))),
            Arc::new(NoopSessionStore),
        );
        shared_context.create_sandbox_files()?;
        let requester = VersionRequester {
            shared_context: Arc::new(shared_context),
            launcher: Arc::clone(&holders) as _,
        };
        Ok(Self { requester, holders, runtime_dir })
    }

    /// Returns the runner of the version requests.
    pub(crate) const fn requester(&self) -> &VersionRequester {
        &self.requester
    }

    /// Ends the holder with all its programs.
    pub(crate) async fn shut_down(self) {
        self.holders.shut_down().await;
        if let Err(error) = fs::remove_dir_all(&self.runtime_dir) {
            tracing::debug!(%error, "failed to remove the folder of a probe");
        }
    }
}
