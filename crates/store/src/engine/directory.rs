//! Data directory: private to its user, and locked against a second daemon.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::StoreError;

/// Number of attempts to lock the directory, over about two seconds.
const LOCK_ATTEMPTS: u32 = 100;

/// Pause between two attempts to lock the directory.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Lock of the directory. The lock ends with its process, and programs that the process starts do not inherit it.
pub(crate) type DirectoryLock = Flock<File>;

/// Open data directory.
#[derive(Debug)]
pub(crate) struct DataDirectory {
    /// Path of the database file, which exists, is private and may be empty.
    pub(crate) database: PathBuf,
    /// Lock against other daemons.
    pub(crate) lock: DirectoryLock,
}

/// Identity of a file, which stays the same while the file has the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Returns the identity of the file at a path.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        Ok(Self { device: metadata.dev(), inode: metadata.ino() })
    }
}

/// Creates the missing parts of a data directory and locks it.
pub(crate) async fn open(folder: &Path) -> Result<DataDirectory, StoreError> {
    let directory_error = |source| StoreError::Directory { folder: folder.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(directory_error)?;
    let lock = lock(folder).await?;
    let database = folder.join("ledger.db");
    // The file is created before SQLite opens it, because SQLite gives its other files the same mode.
    open_private_file(&database).map_err(directory_error)?;
    Ok(DataDirectory { database, lock })
}

/// Locks the directory. A child process that another service was about to start holds a copy of the lock from its
/// `fork` to its `execve`, also after that service has crashed, so the lock is tried again for a short time.
async fn lock(folder: &Path) -> Result<DirectoryLock, StoreError> {
    let directory_error = |source| StoreError::Directory { folder: folder.to_owned(), source };
    let mut file = open_private_file(&folder.join("lock")).map_err(directory_error)?;
    for _ in 0..LOCK_ATTEMPTS {
        file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((file, Errno::EWOULDBLOCK)) => file,
            Err((_, errno)) => return Err(directory_error(errno.into())),
        };
        tokio::time::sleep(LOCK_PAUSE).await;
    }
    Err(StoreError::Locked { folder: folder.to_owned() })
}

/// Opens a file that only its owner may read; like all files of the standard library it is closed on exec.
fn open_private_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}
