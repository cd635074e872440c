//! Stand-in for an input that was closed.

use std::io;
use std::os::fd::OwnedFd;

use nix::fcntl::OFlag;
use nix::unistd::pipe2;

/// Returns the write end of a pipe without a reader. It takes the place of a closed input, beside its journal.
///
/// # Errors
/// Fails if a descriptor cannot be created.
pub(crate) fn create_readerless_pipe() -> io::Result<OwnedFd> {
    let (_read, write) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
    Ok(write)
}
