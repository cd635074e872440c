//! Contents of the execution's own folder before the program starts.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use algonius_actors::decide::classify::success_evaluation::file_write_failure;
use algonius_actors::model::execution::request::Request;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::UnixUser;
use algonius_warden::LaunchRequest;
use tokio::task::spawn_blocking;

use crate::drivers::files::input_files;
use crate::drivers::files::scratch_dir::{ScratchDir, TEMPORARY_FOLDER};
use crate::drivers::files::scratch_slots::{ScratchSlot, ScratchSlots};
use crate::drivers::program::context::SharedDriverContext;
use crate::drivers::program::sandbox::PreparedSandbox;

/// Contents of an execution's own folder.
pub(in crate::drivers::program) struct AttemptFolderSpec {
    /// Path of the folder.
    pub(in crate::drivers::program) folder: PathBuf,
    /// True if the folder has a directory for temporary files.
    pub(in crate::drivers::program) has_temporary_folder: bool,
    /// User who owns all files of the folder.
    pub(in crate::drivers::program) owner: Option<UnixUser>,
    /// Files of the request, if the folder has any.
    pub(in crate::drivers::program) input: Option<FolderInput>,
}

/// Files of a request in an execution's own folder.
pub(in crate::drivers::program) struct FolderInput {
    /// Name and contents of the file with the text for the program, if there is one.
    pub(in crate::drivers::program) text_file: Option<(String, String)>,
    /// Request whose files the program receives, if it has any.
    pub(in crate::drivers::program) request: Option<Arc<Request>>,
}

/// Creates the folder, if one is needed, and the sandbox. All file operations run together, on a blocking thread if
/// they may wait for a disk.
///
/// # Errors
/// Fails if the system does not provide a resource.
pub(in crate::drivers::program) async fn create_folder_and_sandbox(
    folder_spec: Option<AttemptFolderSpec>,
    (sandbox, slot): PreparedSandbox,
    launch: LaunchRequest,
    context: &Arc<SharedDriverContext>,
) -> Result<(Option<ScratchDir>, LaunchRequest), Failure> {
    let can_run_inline = folder_spec.as_ref().is_none_or(AttemptFolderSpec::writes_no_file)
        && sandbox.can_apply_without_io();
    let (in_memory, slots) =
        (context.settings.is_runtime_dir_in_memory, Arc::clone(&context.scratch_slots));
    let can_run_inline = can_run_inline && in_memory;
    let create = move || {
        let slot = slot.map(|slot| (slot, slots));
        let folder = folder_spec.map(|folder_spec| folder_spec.create(slot)).transpose()?;
        let folder = folder.map(|folder| folder.with_in_memory(in_memory));
        Ok((folder, sandbox.apply(launch)?))
    };
    // In memory this is about fifteen short system calls, which cost less than two changes of the thread.
    if can_run_inline {
        return create();
    }
    let created = spawn_blocking(create).await;
    created.unwrap_or_else(|error| Err(folder_failure(&io::Error::other(error))))
}

impl AttemptFolderSpec {
    /// Returns true if no file is written into the folder.
    const fn writes_no_file(&self) -> bool {
        self.input.is_none()
    }

    /// Creates the contents in the folder of the slot, or in a new folder.
    fn create(self, slot: Option<(ScratchSlot, Arc<ScratchSlots>)>) -> Result<ScratchDir, Failure> {
        let Self { folder, has_temporary_folder, owner, input } = self;
        let folder = match slot {
            Some((slot, slots)) => ScratchDir::from_slot(slot, slots, owner),
            None => ScratchDir::create(folder, owner).map_err(|error| folder_failure(&error))?,
        };
        if has_temporary_folder {
            folder.create_folder(TEMPORARY_FOLDER).map_err(|error| folder_failure(&error))?;
        }
        if let Some(FolderInput { text_file: text, request }) = input {
            if let Some((name, text)) = text {
                let written = folder.write(&name, text.as_bytes());
                written.map_err(|error| folder_failure(&error))?;
            }
            if let Some(request) = request {
                input_files::write_files(&request.input.parts, &folder)?;
            }
        }
        // The owner changes last: no process of the agent's user changes anything while the service works there as
        // root.
        folder.transfer_ownership().map_err(|error| folder_failure(&error))?;
        Ok(folder)
    }
}

fn folder_failure(error: &io::Error) -> Failure {
    tracing::error!(%error, "failed to create folder of an execution");
    file_write_failure(error.raw_os_error())
}
