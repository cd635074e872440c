//! Start of a process holder, and protection of the service's own process.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::sys::prctl::{set_child_subreaper, set_dumpable, set_name};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout, setsid};

use super::holder::run_holder;
use super::inherited_state::soft_limits;
use super::memory::trim_memory;
use super::process::signal::{ignore_file_size_signal, reset_signal_handlers};

/// Signals that a process holder handles. The last three would end it by default; the holder itself decides.
const HANDLED_SIGNALS: [Signal; 4] =
    [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];

/// Turns this process into a process holder that serves the other end of its standard input. Returns after everything
/// that it held has ended. `args` are the arguments that follow the name of the command.
///
/// [`forbid_inspection_and_adopt_orphans`] must run before.
///
/// # Errors
/// Fails if standard input is no such socket, or if a system call fails.
pub fn serve_as_holder(args: impl Iterator<Item = OsString>) -> io::Result<()> {
    let supervisor_socket = io::stdin().as_fd().try_clone_to_owned()?;
    set_name(c"algonius-warden")?; // Same name as `procfs::HOLDER_PROCESS_NAME`.
    _ = setsid(); // Fails only for a process that is a group leader already.
    reset_signal_handlers();
    ignore_file_size_signal(); // The memory files of the output count as files.
    let signals = open_signal_fd()?;
    let null_device = OwnedFd::from(File::options().read(true).write(true).open("/dev/null")?);
    dup2_stdin(&null_device)?;
    dup2_stdout(&null_device)?;
    dup2_stderr(&null_device)?;
    drop(null_device);
    trim_memory();
    run_holder(supervisor_socket, signals, &soft_limits::resolve_program_limits(args))
}

/// Guards this process: agents of the same user can neither read its memory and environment nor get a core dump of it,
/// and their orphans become its children.
///
/// # Errors
/// Fails if the system refuses it.
pub fn forbid_inspection_and_adopt_orphans() -> io::Result<()> {
    set_dumpable(false)?;
    set_child_subreaper(true)?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    Ok(())
}

/// Returns true if programs can be labelled: the hard limit of file locks, which carries the label, must be unlimited.
pub(super) fn can_label_processes() -> bool {
    getrlimit(Resource::RLIMIT_LOCKS).is_ok_and(|(_, hard)| hard == nix::libc::RLIM_INFINITY)
}

fn open_signal_fd() -> io::Result<SignalFd> {
    let mut mask = SigSet::empty();
    HANDLED_SIGNALS.into_iter().for_each(|signal| mask.add(signal));
    mask.thread_block()?;
    Ok(SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?)
}
