//! Contents of the execution's own folder before the program starts.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use algonius_actors::decide::classify::contract::files_failure;
use algonius_actors::model::execution::request::Request;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::User;
use algonius_warden::Launch;
use tokio::task::spawn_blocking;

use crate::drivers::files::input_files;
use crate::drivers::files::scratch_dir::{Folder, TEMPORARY};
use crate::drivers::files::scratch_slots::{ScratchSlot, Slots};
use crate::drivers::program::context::SharedDriverContext;
use crate::drivers::program::sandbox::Prepared;

/// Contents of an execution's own folder.
pub(super) struct WorkdirSpec {
    /// Path of the folder.
    pub(super) folder: PathBuf,
    /// True if the folder has a directory for temporary files.
    pub(super) has_place: bool,
    /// Name of the input file, if there is one.
    pub(super) input: Option<String>,
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
pub(super) async fn prepare(
    furniture: Option<WorkdirSpec>,
    (hold, slot): Prepared,
    launch: Launch,
    place: &Arc<SharedDriverContext>,
) -> Result<(Option<Folder>, Launch), Failure> {
    let is_at_hand = furniture.as_ref().is_none_or(WorkdirSpec::is_small) && hold.is_at_hand();
    let (in_memory, slots) = (place.site.in_memory, Arc::clone(&place.slots));
    let is_at_hand = is_at_hand && in_memory;
    let make = move || {
        let slot = slot.map(|slot| (slot, slots));
        let folder = furniture.map(|furniture| furniture.make(slot)).transpose()?;
        let folder = folder.map(|folder| folder.in_memory(in_memory));
        Ok((folder, hold.apply(launch)?))
    };
    // In memory this is about fifteen short system calls, which cost less than two changes of the thread.
    if is_at_hand {
        return make();
    }
    let made = spawn_blocking(make).await;
    made.unwrap_or_else(|error| Err(unmade(&io::Error::other(error))))
}

impl WorkdirSpec {
    /// Returns true if no file is written into the folder.
    const fn is_small(&self) -> bool {
        self.input.is_none() && !self.has_files
    }

    /// Creates the contents in the folder of the slot, or in a new folder.
    fn make(self, slot: Option<(ScratchSlot, Arc<Slots>)>) -> Result<Folder, Failure> {
        let Self { folder, has_place, input, has_files, owner, request } = self;
        let folder = match slot {
            Some((slot, slots)) => Folder::of_slot(slot, slots, owner),
            None => Folder::make(folder, owner).map_err(|error| unmade(&error))?,
        };
        if has_place {
            folder.make_folder(TEMPORARY).map_err(|error| unmade(&error))?;
        }
        if let Some(name) = input {
            let written = folder.write(&name, request.input.text().as_bytes());
            written.map_err(|error| unmade(&error))?;
        }
        if has_files {
            input_files::write(&request.input.parts, &folder)?;
        }
        // The owner changes last: no process of the agent's user changes anything while the service works there as
        // root.
        folder.transfer_ownership().map_err(|error| unmade(&error))?;
        Ok(folder)
    }
}

fn unmade(error: &io::Error) -> Failure {
    tracing::error!(%error, "failed to create folder of an execution");
    files_failure(error.raw_os_error())
}
