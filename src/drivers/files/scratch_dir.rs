//! Execution's own folder, for its input and output files.
//!
//! The service creates, reads and removes files by the descriptor of the folder, and never by a path through
//! it: the program may change everything in the folder, also while the service, which may be root, works there.

#[cfg(test)]
mod tests;

use std::ffi::CString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, unlinkat};
use tokio::task::spawn_blocking;

use algonius_actors::model::program::UnixUser;

use super::removal::{
    is_folder_empty, open_folder, open_folder_at, open_folder_with_owner_access, reclaim_folder,
    remove_folder_contents,
};
use super::scratch_slots::{ScratchSlot, ScratchSlots};

/// Folder of mode 0700. Dropping it removes it with all its contents, which may block on file operations.
#[derive(Debug)]
pub(in crate::drivers) struct ScratchDir {
    path: PathBuf,
    descriptor: Arc<OwnedFd>,
    is_in_memory: bool,
    /// User who owns the folder and the files that the service writes into it.
    owner: Option<UnixUser>,
    /// Slot of the folder, and the slots to which it returns.
    slot: Option<(ScratchSlot, Arc<ScratchSlots>)>,
    /// Parent folder, which is removed with the folder.
    adopted_slot_folder: Option<PathBuf>,
    /// True after the folder was left to another owner, or removed.
    is_released: bool,
}

/// Folder for temporary files of a confined program, in the execution's own folder.
pub(in crate::drivers) const TEMPORARY_FOLDER: &str = ".tmp";

impl ScratchDir {
    /// Creates the folder, and its missing parents. The folder belongs to the service until
    /// [`Self::transfer_ownership`].
    ///
    /// # Errors
    /// Fails if the folder exists already or cannot be created.
    pub(in crate::drivers) fn create(path: PathBuf, owner: Option<UnixUser>) -> io::Result<Self> {
        let create = || DirBuilder::new().mode(0o700).create(&path);
        match create() {
            // The first execution of all has to create the parents.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let parent = path.parent().unwrap_or(&path);
                DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
                create()?;
            }
            created => created?,
        }
        let folder = Arc::new(open_folder(&path)?);
        Ok(Self::new(path, folder, owner))
    }

    fn new(path: PathBuf, descriptor: Arc<OwnedFd>, owner: Option<UnixUser>) -> Self {
        Self {
            path,
            descriptor,
            is_in_memory: false,
            owner,
            slot: None,
            adopted_slot_folder: None,
            is_released: false,
        }
    }

    /// Returns the empty folder of a slot, which becomes free again when the folder is cleared.
    pub(in crate::drivers) fn from_slot(
        slot: ScratchSlot,
        slots: Arc<ScratchSlots>,
        owner: Option<UnixUser>,
    ) -> Self {
        let mut folder = Self::new(slot.execution_folder().to_owned(), slot.descriptor(), owner);
        folder.slot = Some((slot, slots));
        folder
    }

    /// Changes the owner of the folder to the agent's user after the folder is complete: from then on that user's
    /// processes may change it.
    ///
    /// # Errors
    /// Fails if the system refuses it.
    pub(in crate::drivers) fn transfer_ownership(&self) -> io::Result<()> {
        self.change_owner(&self.descriptor)
    }

    fn change_owner(&self, target: &impl AsFd) -> io::Result<()> {
        let Some(UnixUser { uid, gid }) = self.owner else { return Ok(()) };
        Ok(fchown(target, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?)
    }

    /// Takes over the folder that an earlier process instance of the service created, or returns `None` if there is
    /// none. The parent folder, if given, is removed with it.
    pub(in crate::drivers) fn adopt(
        (path, slot_folder): (PathBuf, Option<PathBuf>),
    ) -> Option<Self> {
        let folder = Arc::new(open_folder_with_owner_access(&path).ok()?);
        let mut scratch_dir = Self::new(path, folder, None);
        scratch_dir.adopted_slot_folder = slot_folder;
        Some(scratch_dir)
    }

    /// Sets whether the folder is in memory, where operations do not wait for a disk.
    pub(in crate::drivers) fn with_in_memory(mut self, in_memory: bool) -> Self {
        self.is_in_memory = in_memory;
        self
    }

    /// Removes the folder, on a blocking thread if that may take long. No process of its execution may be alive any
    /// more.
    pub(in crate::drivers) async fn remove(mut self) {
        // In memory these calls return at once. On a disk they could hold up the thread, which serves other executions
        // too.
        if self.is_in_memory && self.try_remove_if_empty() {
            self.is_released = true;
            self.release_slot_or_remove_folder();
        } else {
            _ = spawn_blocking(move || self.remove_blocking()).await;
        }
    }

    /// Removes a folder without files, or checks that the folder of a slot is empty. Most programs leave no files.
    /// Returns true if nothing remains to be removed.
    fn try_remove_if_empty(&self) -> bool {
        if self.slot.is_some() && reclaim_folder(&self.descriptor).is_err() {
            return false;
        }
        // The folder for temporary files is nearly always the only entry; a failure shows in the next check.
        _ = unlinkat(&self.descriptor, TEMPORARY_FOLDER, UnlinkatFlags::RemoveDir);
        match &self.slot {
            Some(_) => is_folder_empty(&self.descriptor).unwrap_or(false),
            None => self.adopted_slot_folder.is_none() && fs::remove_dir(&self.path).is_ok(),
        }
    }

    /// Removes the folder, or empties the folder of a slot for the next execution.
    fn remove_blocking(mut self) {
        self.is_released = true;
        if let Err(error) =
            reclaim_folder(&self.descriptor).and_then(|()| remove_folder_contents(&self.descriptor))
        {
            tracing::error!(%error, "failed to empty folder of an execution, which is not used again");
            // The next start of the service removes the folder.
            self.slot.take().into_iter().for_each(|(slot, _)| slot.detach());
        }
        self.release_slot_or_remove_folder();
    }

    /// Returns the slot, whose folder is empty, or removes the empty folder.
    fn release_slot_or_remove_folder(&mut self) {
        match self.slot.take() {
            Some((slot, slots)) => slots.release(slot),
            None => self.remove_folders(),
        }
    }

    fn remove_folders(&self) {
        for folder in std::iter::once(&self.path).chain(&self.adopted_slot_folder) {
            _ = fs::remove_dir(folder); // The folder has files if they could not be removed, which was logged.
        }
    }

    /// Leaves the folder for the next process instance of the service.
    pub(in crate::drivers) fn detach(mut self) {
        self.is_released = true;
        if let Some((slot, _)) = self.slot.take() {
            slot.detach();
        }
    }

    /// Returns the path of the folder.
    pub(in crate::drivers) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the descriptor of the folder, which stays the same whatever the program puts at the path.
    pub(in crate::drivers) fn descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.descriptor)
    }

    /// Creates a folder of mode 0700 in this folder.
    ///
    /// # Errors
    /// Fails if a folder with this name exists already or cannot be created.
    pub(in crate::drivers) fn create_folder(&self, name: &str) -> io::Result<()> {
        mkdirat(&self.descriptor, name, Mode::S_IRWXU)?;
        if self.owner.is_none() {
            return Ok(());
        }
        let name = CString::new(name).map_err(io::Error::other)?;
        // The folder belongs to the service until `transfer_ownership`, so no process can replace this entry before
        // it is opened.
        self.change_owner(&open_folder_at(&self.descriptor, &name)?)
    }

    /// Writes a new file of mode 0600, in the folder or in one of its folders.
    ///
    /// # Errors
    /// Fails if the file exists or cannot be written.
    pub(in crate::drivers) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let (parent, name) = match name.split_once('/') {
            Some((parent, name)) => {
                let parent = CString::new(parent).map_err(io::Error::other)?;
                (Some(open_folder_at(&self.descriptor, &parent)?), name)
            }
            None => (None, name),
        };
        let parent = parent.as_ref().unwrap_or(&self.descriptor);
        // `O_EXCL` and `O_NOFOLLOW`: the file is new, so no existing file or link can receive the bytes.
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        let mut file = File::from(openat(parent, name, flags | OFlag::O_NOFOLLOW, mode)?);
        file.write_all(bytes)?;
        self.change_owner(&file)
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        if self.is_released {
            return;
        }
        if let Err(error) =
            reclaim_folder(&self.descriptor).and_then(|()| remove_folder_contents(&self.descriptor))
        {
            tracing::error!(%error, "failed to remove folder of an execution");
        }
        // A process of the execution may still be alive, so its slot is not used again.
        match self.slot.take() {
            Some(slot) => drop(slot),
            None => self.remove_folders(),
        }
    }
}

/// Returns true if the mode lets a user without other groups read a file, or enter a folder.
pub(in crate::drivers) fn can_read_or_enter(
    UnixUser { uid, gid }: UnixUser,
    metadata: &fs::Metadata,
) -> bool {
    let shift = match metadata {
        _ if metadata.uid() == uid => 6,
        _ if metadata.gid() == gid => 3,
        _ => 0,
    };
    let needed = if metadata.is_dir() { 0o1 } else { 0o4 };
    metadata.mode() >> shift & needed != 0
}

/// Returns the flags for opening a file that a program wrote: they follow no link at its path and do not wait at a
/// pipe.
pub(super) fn read_flags() -> OFlag {
    OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC
}

/// Opens a file that a program wrote, at a path without links, and returns its length. Returns `None` if it is not a
/// regular file.
///
/// # Errors
/// Fails if the file cannot be opened, or if the modes do not let the `reader` open it.
pub(in crate::drivers) fn open_regular_file(
    path: &Path,
    program_user: Option<UnixUser>,
) -> io::Result<Option<(File, u64)>> {
    let file = match program_user {
        None => OpenOptions::new().read(true).custom_flags(read_flags().bits()).open(path)?,
        Some(reader) => open_as_user(reader, path)?,
    };
    let metadata = file.metadata()?;
    Ok(metadata.is_file().then_some((file, metadata.len())))
}

/// Opens a file with the permissions of a user. Each folder is checked by the descriptor through which the next
/// component is opened, so that no other folder can take its place in between.
fn open_as_user(user: UnixUser, path: &Path) -> io::Result<File> {
    let folder_flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut current = File::from(open("/", folder_flags, Mode::empty())?);
    let mut names = path.iter().skip(1).peekable(); // The first component is the root.
    while let Some(name) = names.next() {
        let flags = if names.peek().is_some() { folder_flags } else { read_flags() };
        current = check_permission(user, current)?;
        current = File::from(openat(&current, name, flags, Mode::empty())?);
    }
    check_permission(user, current)
}

fn check_permission(user: UnixUser, entry: File) -> io::Result<File> {
    let metadata = entry.metadata()?;
    // The caller refuses a pipe or a device as such.
    let is_permitted =
        can_read_or_enter(user, &metadata) || !(metadata.is_dir() || metadata.is_file());
    if is_permitted { Ok(entry) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}
