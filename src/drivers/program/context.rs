//! Context that all attempts of a service share: its folders, sandboxes, environment and session store.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::decide::host::refusal::host_fault_failure;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::host::host_fault::HostFault;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::ports::session_store::SessionStore;
use algonius_warden::confinement::socket_search::EscapeSocketSearch;
use nix::unistd::{AccessFlags, access};
use tokio::time::Instant;

use super::program_environment::{self, InheritedVariables};
use super::service_paths::ServicePaths;
use crate::drivers::files::scratch_slots::ScratchSlots;
use crate::drivers::start_faults::run_blocking_with_limits;

/// Name of the empty file.
const EMPTY_FILE: &str = "empty";

/// Time limit for the removal of left folders, during which the service does not listen yet.
const STALE_FOLDER_REMOVAL_TIMEOUT: Duration = Duration::from_secs(30);

/// Paths and capabilities that all drivers of a service share.
#[derive(Debug, Clone)]
pub struct DriverSettings {
    /// Directory of the executions' own folders, for their input and output files.
    pub runtime_dir: PathBuf,
    /// Search for sockets of other programs through which a program could be started outside of a sandbox.
    pub escape_sockets: Arc<EscapeSocketSearch>,
    /// Path of bubblewrap, if it works.
    pub bubblewrap: Option<PathBuf>,
    /// True if the folders of executions are in memory, where operations do not wait for a disk.
    pub is_runtime_dir_in_memory: bool,
}

/// Returns the name of the folder of an attempt.
#[must_use]
pub fn attempt_folder_name((execution, attempt_id): (ExecutionId, AttemptId)) -> String {
    format!("{execution}-{}-{}", attempt_id.turn, attempt_id.attempt)
}

/// Context that all attempts of a service share.
pub struct SharedDriverContext {
    /// Paths and capabilities.
    pub(super) settings: DriverSettings,
    /// Files of the service, which no program may read or change.
    pub service_paths: Arc<ServicePaths>,
    /// Scratch folders of confined programs.
    pub(super) scratch_slots: Arc<ScratchSlots>,
    /// Environment of the service as far as programs may see it.
    pub(super) inherited_variables: InheritedVariables,
    /// Store of the sessions in which programs remember conversations.
    pub(super) sessions: Arc<dyn SessionStore>,
}

impl SharedDriverContext {
    /// Returns a context with the allowed part of this process's present environment.
    #[must_use]
    pub fn new(
        settings: DriverSettings,
        service_paths: Arc<ServicePaths>,
        sessions: Arc<dyn SessionStore>,
    ) -> Self {
        let slots = Arc::new(ScratchSlots::new(&settings.runtime_dir));
        // Shared by all agents: a copy for each would take about 1 KB.
        Self {
            settings,
            service_paths,
            scratch_slots: slots,
            inherited_variables: program_environment::inherited_variables(),
            sessions,
        }
    }

    /// Returns the empty file in the runtime folder, which replaces files that a program may not read.
    pub(super) fn empty_file(&self) -> PathBuf {
        self.settings.runtime_dir.join(EMPTY_FILE)
    }

    /// Returns an error if executions cannot have folders in the runtime folder. Blocks on the file system.
    ///
    /// # Errors
    /// Fails if the folder is missing, or cannot be written.
    pub fn check_runtime_folder(&self) -> io::Result<()> {
        Ok(access(&self.settings.runtime_dir, AccessFlags::W_OK | AccessFlags::X_OK)?)
    }

    /// Replaces a failure if it follows from the lack of the runtime folder.
    pub(super) async fn explain_by_runtime_folder(self: &Arc<Self>, failure: Failure) -> Failure {
        if !matches!(failure.code, Code::Internal | Code::NotStarted) {
            return failure;
        }
        let context = Arc::clone(self);
        let is_missing =
            run_blocking_with_limits(move || context.check_runtime_folder().is_err()).await;
        let confirmed_absence = is_missing.filter(|is_missing| *is_missing);
        confirmed_absence
            .and_then(|_| host_fault_failure(&[HostFault::RuntimeFolder]))
            .unwrap_or(failure)
    }

    /// Returns the sockets through which a program could start others outside of a sandbox.
    pub async fn find_escape_sockets(&self) -> Vec<PathBuf> {
        self.settings.escape_sockets.find().await
    }

    /// Returns true if the files that sandboxes need are there.
    #[must_use]
    pub fn has_sandbox_files(&self) -> bool {
        self.empty_file().symlink_metadata().is_ok()
    }

    /// Creates the folders and files that sandboxes need.
    ///
    /// # Errors
    /// Fails if the runtime folder cannot be written.
    pub fn create_sandbox_files(&self) -> io::Result<()> {
        // Bubblewrap mounts this file in place of hidden ones, so nobody may write to it.
        let created =
            OpenOptions::new().write(true).create_new(true).mode(0o444).open(self.empty_file());
        match created {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes the folders of executions that ended while the service was down; `is_continued` returns true if an
    /// execution continues, and `continued_slots` are the slots of those that do. May block for some seconds.
    pub fn remove_stale_folders(
        &self,
        is_continued: &dyn Fn(&str) -> bool,
        continued_slots: &HashSet<u64>,
    ) -> usize {
        self.scratch_slots.remove_stale_folders(
            (&self.settings.runtime_dir, Instant::now() + STALE_FOLDER_REMOVAL_TIMEOUT),
            is_continued,
            continued_slots,
        )
    }
}
