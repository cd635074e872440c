//! Files that a program has made and only names: read if they are in a permitted folder.
//!
//! The program has the rights of the service's user, so this is no protection of the files. It keeps a manipulated
//! agent from handing over files beside its work.

#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use algonius_actors::model::program::UnixUser;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::scratch_dir::open_regular_file;

/// Time limit for reading a file: a broken mount must not delay the end.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Folders that may contain the files of an attempt.
#[derive(Debug, Clone)]
pub(in crate::drivers) struct AllowedFolders {
    working_dir: PathBuf,
    folders: Vec<PathBuf>,
    /// Paths within the folders that are not handed over, since the program must not see them.
    hidden_paths: Vec<PathBuf>,
    /// User of the program, if it differs from the service's own user.
    program_user: Option<UnixUser>,
}

/// Reason why a file was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::drivers) enum NamedFileRefusal {
    /// No such file.
    Missing,
    /// File, or the target of its link, outside the folders.
    OutsideFolders,
    /// Folder, pipe or device.
    NotRegularFile,
    /// Size in bytes that exceeds the room.
    TooLarge(u64),
    /// File that the system did not let the service read.
    Unreadable,
}

impl NamedFileRefusal {
    /// Returns the clause that completes "the file was not delivered: ".
    pub(in crate::drivers) const fn clause(self) -> &'static str {
        match self {
            Self::Missing => "it does not exist",
            Self::OutsideFolders => "it is outside the folders of the agent and of the execution",
            Self::NotRegularFile => "it is not a regular file",
            Self::TooLarge(_) => "it exceeds the rest of the agent's output limit",
            Self::Unreadable => "it could not be read",
        }
    }
}

impl AllowedFolders {
    /// Returns the agent's working directory, where relative paths start, and the execution's own folder, without the
    /// `hidden` paths. Must be called before the program starts.
    pub(in crate::drivers) async fn new(
        working_dir: PathBuf,
        execution_folder: Option<PathBuf>,
        hidden_paths: Vec<PathBuf>,
    ) -> Self {
        // Resolved now, before the program starts: links that it puts in their place have no effect.
        let folders = std::iter::once(working_dir.clone()).chain(execution_folder);
        let (folders, hidden) = (
            canonicalize_existing(folders.collect()).await,
            canonicalize_existing(hidden_paths).await,
        );
        Self { working_dir, folders, hidden_paths: hidden, program_user: None }
    }

    /// Returns no folders, for work that has no files on this machine.
    pub(in crate::drivers) const fn none() -> Self {
        Self {
            working_dir: PathBuf::new(),
            folders: Vec::new(),
            hidden_paths: Vec::new(),
            program_user: None,
        }
    }

    /// Restricts the files to those that this user may read. The service may be root, and could read more.
    pub(in crate::drivers) fn with_program_user(self, program_user: Option<UnixUser>) -> Self {
        Self { program_user, ..self }
    }

    /// Returns a path for display: relative to its folder, or the bare name for a path elsewhere.
    pub(in crate::drivers) fn display_path(&self, path: &str) -> String {
        let path = Path::new(path);
        let folders = std::iter::once(&self.working_dir).chain(&self.folders);
        let relative = folders.filter_map(|folder| path.strip_prefix(folder).ok()).next();
        let relative = relative.or_else(|| path.is_relative().then_some(path));
        // A path with `..` may lead out of its folder, so only its name is shown.
        let is_inside = |path: &&Path| path.components().all(|part| part != Component::ParentDir);
        let name = || path.file_name().map(Path::new);
        let relative_path =
            relative.filter(is_inside).or_else(name).unwrap_or_else(|| Path::new(""));
        relative_path.to_string_lossy().into_owned()
    }

    /// Reads a file of at most `limit` bytes, and converts the bytes on a blocking thread.
    ///
    /// # Errors
    /// The reason why the file was not read.
    pub(in crate::drivers) async fn read<T: Send + 'static>(
        &self,
        path: &str,
        limit: usize,
        convert: impl FnOnce(Vec<u8>) -> T + Send + 'static,
    ) -> Result<T, NamedFileRefusal> {
        let (allowed_folders, path) = (self.clone(), self.working_dir.join(path));
        // A broken mount may never answer. The thread that waits for it is then left behind.
        let reading = spawn_blocking(move || allowed_folders.read_bytes(&path, limit).map(convert));
        match timeout(READ_TIMEOUT, reading).await {
            Ok(Ok(read)) => read,
            Ok(Err(_)) | Err(_) => Err(NamedFileRefusal::Unreadable),
        }
    }

    fn read_bytes(&self, path: &Path, limit: usize) -> Result<Vec<u8>, NamedFileRefusal> {
        let (file, length) = self.open(path)?;
        let max_length = limit as u64;
        if length > max_length {
            return Err(NamedFileRefusal::TooLarge(length));
        }
        let mut bytes = Vec::new();
        // One byte more than allowed tells a file that has grown from one that just fits.
        let read = file.take(max_length.saturating_add(1)).read_to_end(&mut bytes);
        match read.map_err(|error| refusal(&error))? {
            read if read > limit => Err(NamedFileRefusal::TooLarge(read as u64)), // It has grown meanwhile.
            _ => Ok(bytes),
        }
    }

    /// Opens a file, and returns its length.
    fn open(&self, path: &Path) -> Result<(File, u64), NamedFileRefusal> {
        let resolved = fs::canonicalize(path).map_err(|error| refusal(&error))?;
        if !self.contains(&resolved) {
            return Err(NamedFileRefusal::OutsideFolders);
        }
        // Opening a device may have an effect, and opening a pipe may wait for its other end, so neither is opened.
        if !fs::symlink_metadata(&resolved).map_err(|error| refusal(&error))?.is_file() {
            return Err(NamedFileRefusal::NotRegularFile);
        }
        let opened =
            open_regular_file(&resolved, self.program_user).map_err(|error| refusal(&error))?;
        let (file, length) = opened.ok_or(NamedFileRefusal::NotRegularFile)?;
        // The program may have replaced a folder of the path since it was resolved; the descriptor has the file that
        // was opened.
        let opened_path = real_path(&file).map_err(|error| {
            tracing::error!(%error, "failed to resolve path of an open file");
            NamedFileRefusal::Unreadable
        })?;
        if self.contains(&opened_path) {
            Ok((file, length))
        } else {
            Err(NamedFileRefusal::OutsideFolders)
        }
    }

    fn contains(&self, path: &Path) -> bool {
        self.folders.iter().filter(|folder| path.starts_with(folder)).any(|folder| {
            // A hidden parent of a folder hides nothing of the folder.
            let mut hidden =
                self.hidden_paths.iter().filter(|it| *it != folder && it.starts_with(folder));
            !hidden.any(|hidden| path.starts_with(hidden))
        })
    }
}

/// Resolves the paths, and omits those that do not exist.
async fn canonicalize_existing(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut resolved = Vec::new();
    for path in paths {
        resolved.extend(tokio::fs::canonicalize(path).await);
    }
    resolved
}

/// Returns the real path of an open file, even if the path that opened it has changed.
fn real_path(file: &File) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn refusal(error: &io::Error) -> NamedFileRefusal {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => NamedFileRefusal::Missing,
        _ => NamedFileRefusal::Unreadable,
    }
}
