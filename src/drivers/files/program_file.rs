//! File that a program writes in the execution's own folder, such as its answer.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use algonius_actors::model::program::UnixUser;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, openat};
use nix::sys::stat::{Mode, fstat, fstatat};

use super::scratch_dir::{ScratchDir, can_read_or_enter, read_flags};

/// Bytes that are read from the end of a file that is too long: its tail, and enough context to redact it.
const TAIL_BYTES: u64 = 2 << 20;

/// Reason why a file of a program was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::drivers) enum ProgramFileRefusal {
    /// There is no file.
    Missing,
    /// The folder of the file was removed.
    FolderRemoved,
    /// The name belongs to a link.
    Link,
    /// The name belongs to a folder or to another special file.
    NotRegularFile,
    /// The modes do not let the program's user read it.
    NotPermitted,
    /// The system refused it.
    Unreadable,
}

impl From<io::Error> for ProgramFileRefusal {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::ENOENT) => Self::Missing,
            Some(Errno::ELOOP) => Self::Link,
            Some(Errno::ENXIO) => Self::NotRegularFile, // A socket has no contents.
            Some(Errno::EACCES) => Self::NotPermitted,
            _ => {
                tracing::warn!(%error, "failed to read file of a program");
                Self::Unreadable
            }
        }
    }
}

/// Contents of a file, or its head and tail.
#[derive(Debug)]
pub(in crate::drivers) struct FileContents {
    /// Start of the file, at most as many bytes as were requested.
    pub(in crate::drivers) head: Vec<u8>,
    /// Number of bytes after the head that were not read.
    pub(in crate::drivers) skipped_bytes: u64,
    /// Bytes after the skipped ones.
    pub(in crate::drivers) tail: Vec<u8>,
}

/// File that a program may write in its own folder.
#[derive(Debug, Clone)]
pub(in crate::drivers) struct ProgramOutputFile {
    folder_descriptor: Arc<OwnedFd>,
    name: CString,
    /// User of the program, with whose permissions the file is read.
    program_user: Option<UnixUser>,
}

impl ProgramOutputFile {
    /// Returns the file with this name, which contains no `/`.
    ///
    /// # Errors
    /// Fails if the name has a zero byte.
    pub(in crate::drivers) fn new(
        folder: &ScratchDir,
        name: &OsStr,
        program_user: Option<UnixUser>,
    ) -> io::Result<Self> {
        let name = CString::new(name.as_bytes()).map_err(io::Error::other)?;
        Ok(Self { folder_descriptor: folder.descriptor(), name, program_user })
    }

    fn refusal(&self, errno: Errno) -> ProgramFileRefusal {
        let is_removed = || fstat(&self.folder_descriptor).is_ok_and(|folder| folder.st_nlink == 0);
        match errno {
            Errno::ENOENT if is_removed() => ProgramFileRefusal::FolderRemoved,
            errno => io::Error::from(errno).into(),
        }
    }

    /// Returns the length of the file in bytes, or zero if there is none.
    pub(in crate::drivers) fn length(&self) -> u64 {
        let metadata =
            fstatat(&self.folder_descriptor, self.name.as_c_str(), AtFlags::AT_SYMLINK_NOFOLLOW);
        metadata.map_or(0, |metadata| metadata.st_size.unsigned_abs())
    }

    /// Reads the first `max_head_bytes` bytes of the file, and the end of a longer file.
    ///
    /// # Errors
    /// Fails if there is no regular file, or if it cannot be read.
    pub(in crate::drivers) fn read_contents(
        &self,
        max_head_bytes: usize,
    ) -> Result<FileContents, ProgramFileRefusal> {
        let opened =
            openat(&self.folder_descriptor, self.name.as_c_str(), read_flags(), Mode::empty());
        let mut file = opened.map(File::from).map_err(|errno| self.refusal(errno))?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(ProgramFileRefusal::NotRegularFile);
        }
        if self.program_user.is_some_and(|user| !can_read_or_enter(user, &metadata)) {
            return Err(ProgramFileRefusal::NotPermitted);
        }
        let head = read_at_most(&file, max_head_bytes as u64)?;
        let head_bytes = head.len() as u64;
        // The tail starts after the head, so no byte is recorded twice.
        let tail_start = metadata.len().saturating_sub(TAIL_BYTES).max(head_bytes);
        file.seek(SeekFrom::Start(tail_start))?;
        let tail = read_at_most(&file, TAIL_BYTES)?;
        Ok(FileContents { head, skipped_bytes: tail_start - head_bytes, tail })
    }
}

fn read_at_most(file: &File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // Bounded here and not by the length, because the program may still write to the file.
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}
