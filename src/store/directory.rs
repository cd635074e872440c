//! The data directory: private to its user, and locked against a second daemon.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use super::StoreError;

/// A held lock. It ends with its process, and child processes do not inherit it.
pub(super) type Lock = Flock<File>;

/// An open data directory.
#[derive(Debug)]
pub(super) struct Directory {
    /// The file of the database. It exists and is private, perhaps empty.
    pub(super) database: PathBuf,
    /// Keeps others out.
    pub(super) lock: Lock,
}

/// Makes what is missing of a data directory, and locks it.
pub(super) fn open(folder: &Path) -> Result<Directory, StoreError> {
    let fault = |source| StoreError::Directory { folder: folder.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(fault)?;
    let lock = lock(folder)?;
    let database = folder.join("ledger.db");
    // Made before SQLite opens it, since SQLite gives its other files the mode of this one.
    private_file(&database).map_err(fault)?;
    Ok(Directory { database, lock })
}

fn lock(folder: &Path) -> Result<Lock, StoreError> {
    let fault = |source| StoreError::Directory { folder: folder.to_owned(), source };
    let file = private_file(&folder.join("lock")).map_err(fault)?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
        Errno::EWOULDBLOCK => StoreError::Locked { folder: folder.to_owned() },
        errno => fault(errno.into()),
    })
}

/// Opens a file that only its owner may read, as the standard library does: closed on exec.
fn private_file(path: &Path) -> io::Result<File> {
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
