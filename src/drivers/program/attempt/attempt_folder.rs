//! Contents of the execution's own folder before the program starts.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use algonius_actors::decide::classify::success_evaluation::files_failure;
use algonius_actors::model::execution::request::Request;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::User;
use algonius_warden::Launch;
use tokio::task::spawn_blocking;

use crate::drivers::files::input_files;
use crate::drivers::files::scratch_dir::{ScratchDir, TEMPORARY_FOLDER};
use crate::drivers::files::scratch_slots::{ScratchSlot, ScratchSlots};
use crate::drivers::program::context::SharedDriverContext;
use crate::drivers::program::sandbox::PreparedSandbox;

/// Contents of an execution's own folder.
pub(super) struct AttemptFolderSpec {
    /// Path of the folder.
    pub(super) folder: PathBuf,
    /// True if the folder has a directory for temporary files.
    pub(super) has_temporary_folder: bool,
    /// Name of the input file, if there is one.
    pub(super) input_name: Option<String>,
    /// True if the request has files.
    pub(super) has_files: bool,
    /// User who owns all files of the folder.
    pub(super) owner: Option<User>,
    /// Request of the execution.
    pub(super) request: Arc<Request>,
}

/// Creates the folder, if one is needed, and the sandbox. All file operations run together, on a blocking thread if
/// they may wait for a disk.
///
/// # Errors
/// Fails if the system does not provide a resource.
pub(super) async fn create_folder_and_sandbox(
    folder_spec: Option<AttemptFolderSpec>,
    (sandbox, slot): PreparedSandbox,
    launch: Launch,
    context: &Arc<SharedDriverContext>,
) -> Result<(Option<ScratchDir>, Launch), Failure> {
    let is_ready =
        folder_spec.as_ref().is_none_or(AttemptFolderSpec::writes_no_file) && sandbox.is_ready();
    let (in_memory, slots) = (context.driver_context.is_in_memory, Arc::clone(&context.slots));
    let is_ready = is_ready && in_memory;
    let create = move || {
        let slot = slot.map(|slot| (slot, slots));
        let folder = folder_spec.map(|folder_spec| folder_spec.create(slot)).transpose()?;
        let folder = folder.map(|folder| folder.in_memory(in_memory));
        Ok((folder, sandbox.apply(launch)?))
    };
    // In memory this is about fifteen short system calls, which cost less than two changes of the thread.
    if is_ready {
        return create();
    }
    let created = spawn_blocking(create).await;
    created.unwrap_or_else(|error| Err(folder_failure(&io::Error::other(error))))
}

impl AttemptFolderSpec {
    /// Returns true if no file is written into the folder.
    const fn writes_no_file(&self) -> bool {
        self.input_name.is_none() && !self.has_files
    }

    /// Creates the contents in the folder of the slot, or in a new folder.
    fn create(self, slot: Option<(ScratchSlot, Arc<ScratchSlots>)>) -> Result<ScratchDir, Failure> {
        let Self { folder, has_temporary_folder, input_name, has_files, owner, request } = self;
        let folder = match slot {
            Some((slot, slots)) => ScratchDir::of_slot(slot, slots, owner),
            None => ScratchDir::create(folder, owner).map_err(|error| folder_failure(&error))?,
        };
        if has_temporary_folder {
            folder.create_folder(TEMPORARY_FOLDER).map_err(|error| folder_failure(&error))?;
        }
        if let Some(name) = input_name {
            let written = folder.write(&name, request.input.text().as_bytes());
            written.map_err(|error| folder_failure(&error))?;
        }
        if has_files {
            input_files::write_files(&request.input.parts, &folder)?;
        }
        // The owner changes last: no process of the agent's user changes anything while the service works there as
        // root.
        folder.transfer_ownership().map_err(|error| folder_failure(&error))?;
        Ok(folder)
    }
}

fn folder_failure(error: &io::Error) -> Failure {
    tracing::error!(%error, "failed to create folder of an execution");
    files_failure(error.raw_os_error())
}
