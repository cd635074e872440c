//! The execution's own folder, for its input and output files.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use tokio::task::spawn_blocking;

use super::sandbox::TEMPORARY;

/// A folder of mode 0700. Dropping it removes it with all that is in it; let it be dropped where
/// files may be waited for.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    in_memory: bool,
}

/// So much is read of the end of a file that is too long: its tail, and what tells of what it is
/// the tail.
const END: u64 = 2 << 20;

/// What a file holds, or the ends of it.
#[derive(Debug)]
pub(super) struct Contents {
    /// At most as many bytes as were asked for.
    pub(super) head: Vec<u8>,
    /// How many bytes after them were not read.
    pub(super) skipped: u64,
    /// The bytes after those.
    pub(super) tail: Vec<u8>,
}

impl Folder {
    /// Makes the folder, and its parents where they do not exist.
    ///
    /// # Errors
    /// When it exists already or cannot be made.
    pub(super) fn make(path: PathBuf) -> io::Result<Self> {
        let make = || DirBuilder::new().mode(0o700).create(&path);
        match make() {
            // The first of all has to make the way to it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let parent = path.parent().unwrap_or(&path);
                DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
                make()?;
            }
            made => made?,
        }
        Ok(Self { path, in_memory: false })
    }

    /// Takes over the folder that an earlier life made; `None` where there is none.
    pub(super) fn find(path: PathBuf) -> Option<Self> {
        // Not made and dropped where there is none: its drop removes.
        if path.is_dir() { Some(Self { path, in_memory: false }) } else { None }
    }

    /// Says that it stands in memory, where nobody waits for a disk.
    pub(super) fn in_memory(mut self, in_memory: bool) -> Self {
        self.in_memory = in_memory;
        self
    }

    /// Removes it; beside the work of others where that may take long.
    pub(super) async fn clear(mut self) {
        if self.in_memory && self.remove_empty() {
            self.path.clear();
        } else {
            _ = spawn_blocking(move || drop(self)).await;
        }
    }

    /// Most programs leave nothing behind, and what is empty needs no looking through. Answers whether
    /// it is gone.
    fn remove_empty(&self) -> bool {
        _ = fs::remove_dir(self.path.join(TEMPORARY));
        fs::remove_dir(&self.path).is_ok()
    }

    /// Leaves it where it is, to whoever finds it.
    pub(super) fn leave(mut self) {
        self.path.clear();
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a folder of mode 0700 in it.
    ///
    /// # Errors
    /// When it exists already or cannot be made.
    pub(super) fn make_place(&self, name: &str) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(self.path.join(name))
    }

    /// Writes a new file of mode 0600.
    ///
    /// # Errors
    /// When the file exists or cannot be written.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let place = self.path.join(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(place)?;
        file.write_all(bytes)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // It was left, or is gone.
        if self.path.as_os_str().is_empty() || self.remove_empty() {
            return;
        }
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(%error, "an execution's folder was not removed");
        }
    }
}

/// Reads so much of a file that a program wrote, and the end of what is more. `None` when there is no
/// regular file.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn contents(path: &Path, limit: usize) -> io::Result<Option<Contents>> {
    let Some((mut file, length)) = open_regular(path).unwrap_or_default() else { return Ok(None) };
    let head = at_most(&file, limit as u64)?;
    let read = head.len() as u64;
    let from = length.saturating_sub(END).max(read);
    file.seek(SeekFrom::Start(from))?;
    let tail = at_most(&file, END)?;
    Ok(Some(Contents { head, skipped: from - read, tail }))
}

/// Opens a file that a program wrote, and tells its length. `None` when it is no regular file:
/// neither is a link followed at its place, nor does a pipe make the reader wait.
///
/// # Errors
/// When it cannot be opened.
pub(super) fn open_regular(path: &Path) -> io::Result<Option<(File, u64)>> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
    let facts = file.metadata()?;
    Ok(facts.is_file().then_some((file, facts.len())))
}

fn at_most(file: &File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}
