//! Data directory: private to its user, and locked against a second daemon.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::StoreError;

/// Lock of the directory. The lock ends with its process, and child processes do not inherit it.
pub(crate) type DirectoryLock = Flock<File>;

/// Open data directory.
#[derive(Debug)]
pub(crate) struct DataDirectory {
    /// Path of the database file, which exists, is private and may be empty.
    pub(crate) database: PathBuf,
    /// Lock against other daemons.
    pub(crate) lock: DirectoryLock,
}

/// Creates the missing parts of a data directory and locks it.
pub(crate) fn open(folder: &Path) -> Result<DataDirectory, StoreError> {
    let directory_error = |source| StoreError::Directory { folder: folder.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(directory_error)?;
    let lock = lock(folder)?;
    let database = folder.join("ledger.db");
    // The file is created before SQLite opens it, because SQLite gives its other files the same mode.
    open_private_file(&database).map_err(directory_error)?;
    Ok(DataDirectory { database, lock })
}

fn lock(folder: &Path) -> Result<DirectoryLock, StoreError> {
    let directory_error = |source| StoreError::Directory { folder: folder.to_owned(), source };
    let file = open_private_file(&folder.join("lock")).map_err(directory_error)?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
        Errno::EWOULDBLOCK => StoreError::Locked { folder: folder.to_owned() },
        errno => directory_error(errno.into()),
    })
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
