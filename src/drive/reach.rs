//! Files that a program has made and only names: read where it may hand them over from.
//!
//! The program has the rights of the service's user, so this is no wall around the files. It keeps
//! an agent that was talked into it from handing over what stands beside its work.

#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::folder::open_regular;

/// A file that takes longer to be read is given up: a broken mount must not hold up the end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The folders below which the files of an attempt may stand.
#[derive(Debug, Clone)]
pub(super) struct Reach {
    base: PathBuf,
    folders: Vec<PathBuf>,
    /// What in them is not handed over, since the program is to see nothing of it.
    hidden: Vec<PathBuf>,
}

/// Why a file was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Nothing stands there.
    Missing,
    /// It stands, or its link leads, elsewhere.
    Outside,
    /// A folder, a pipe or a device.
    Irregular,
    /// It has so many bytes, more than there is room for.
    TooLarge(u64),
    /// The system did not give it.
    Unreadable,
}

impl Refusal {
    /// Completes "the file was not delivered: ".
    pub(super) const fn clause(self) -> &'static str {
        match self {
            Self::Missing => "there is no such file",
            Self::Outside => "it is outside the folders of the agent and of the execution",
            Self::Irregular => "it is not a regular file",
            Self::TooLarge(_) => "it is larger than what is left of the agent's output limit",
            Self::Unreadable => "it could not be read",
        }
    }
}

impl Reach {
    /// The agent's working directory, from which relative paths are seen, and the execution's own
    /// folder, but for what is `hidden` in either. To be called before the program starts: where they
    /// are is settled then, so that a program that puts a link in their place gains nothing.
    pub(super) async fn of(
        working_dir: PathBuf,
        folder: Option<PathBuf>,
        hidden: Vec<PathBuf>,
    ) -> Self {
        let own = std::iter::once(working_dir.clone()).chain(folder);
        let (folders, hidden) = (found(own.collect()).await, found(hidden).await);
        Self { base: working_dir, folders, hidden }
    }

    /// A path as it may be shown: below its folder; of what stands elsewhere the name alone.
    pub(super) fn shown(&self, path: &str) -> String {
        let path = Path::new(path);
        let own = std::iter::once(&self.base).chain(&self.folders);
        let below = own.filter_map(|folder| path.strip_prefix(folder).ok()).next();
        let below = below.or_else(|| path.is_relative().then_some(path));
        let is_inside = |path: &&Path| path.components().all(|part| part != Component::ParentDir);
        let name = || path.file_name().map(Path::new);
        let shown = below.filter(is_inside).or_else(name).unwrap_or_else(|| Path::new(""));
        shown.to_string_lossy().into_owned()
    }

    /// Reads a file of at most `limit` bytes, and makes something of it where it may take long.
    ///
    /// # Errors
    /// Why it was not read.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        path: &str,
        limit: usize,
        make: impl FnOnce(Vec<u8>) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let (reach, path) = (self.clone(), self.base.join(path));
        let reading = spawn_blocking(move || reach.bytes(&path, limit).map(make));
        match timeout(PATIENCE, reading).await {
            Ok(Ok(read)) => read,
            Ok(Err(_)) | Err(_) => Err(Refusal::Unreadable),
        }
    }

    fn bytes(&self, path: &Path, limit: usize) -> Result<Vec<u8>, Refusal> {
        let (file, length) = self.open(path)?;
        let most = limit as u64;
        if length > most {
            return Err(Refusal::TooLarge(length));
        }
        let mut bytes = Vec::new();
        let read = file.take(most.saturating_add(1)).read_to_end(&mut bytes);
        match read.map_err(|error| refusal(&error))? {
            read if read > limit => Err(Refusal::TooLarge(read as u64)), // It has grown meanwhile.
            _ => Ok(bytes),
        }
    }

    /// Opens a file, with its length. What is judged before the opening only spares devices and
    /// pipes a visit; what is opened is judged again, for the path may have changed in between.
    fn open(&self, path: &Path) -> Result<(File, u64), Refusal> {
        let place = fs::canonicalize(path).map_err(|error| refusal(&error))?;
        if !self.holds(&place) {
            return Err(Refusal::Outside);
        }
        if !fs::symlink_metadata(&place).map_err(|error| refusal(&error))?.is_file() {
            return Err(Refusal::Irregular);
        }
        let opened = open_regular(&place).map_err(|error| refusal(&error))?;
        let (file, length) = opened.ok_or(Refusal::Irregular)?;
        let opened = place_of(&file).map_err(|error| {
            tracing::error!(%error, "where an open file stands is not known");
            Refusal::Unreadable
        })?;
        if self.holds(&opened) { Ok((file, length)) } else { Err(Refusal::Outside) }
    }

    fn holds(&self, place: &Path) -> bool {
        self.folders.iter().filter(|folder| place.starts_with(folder)).any(|folder| {
            // What is hidden around a folder hides nothing of it.
            let mut hidden =
                self.hidden.iter().filter(|it| *it != folder && it.starts_with(folder));
            !hidden.any(|hidden| place.starts_with(hidden))
        })
    }
}

/// Where paths lead; those that lead nowhere are left out.
async fn found(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut places = Vec::new();
    for path in paths {
        places.extend(tokio::fs::canonicalize(path).await);
    }
    places
}

/// Where an open file really stands, whatever has become of the path by which it was opened.
fn place_of(file: &File) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn refusal(error: &io::Error) -> Refusal {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Refusal::Missing,
        _ => Refusal::Unreadable,
    }
}
