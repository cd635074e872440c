//! How a process becomes a warden, and how the service's own process is guarded.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::sys::prctl::{set_child_subreaper, set_dumpable, set_name};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout, setsid};

use super::keeper::keep;
use super::memory::give_back;
use super::signal::forget_handlers;

/// The name under which wardens are seen.
pub(super) const WARDEN: &str = "algonius-warden";

/// What a warden is told by the system. The last three would end it, and are for it to decide.
const SIGNALS: [Signal; 4] = [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];

/// Makes this process a warden that serves whoever holds the other end of its standard input.
/// Returns when everything that it held has ended.
///
/// The process is [guarded](guard) before.
///
/// # Errors
/// When standard input is no such socket, or the system gives too little to begin with.
pub fn serve() -> io::Result<()> {
    let link = io::stdin().as_fd().try_clone_to_owned()?;
    set_name(c"algonius-warden")?; // As in `WARDEN`.
    _ = setsid(); // Fails only for who leads a group already.
    forget_handlers();
    let signals = signals()?;
    let nothing = OwnedFd::from(File::options().read(true).write(true).open("/dev/null")?);
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;
    dup2_stderr(&nothing)?;
    drop(nothing);
    give_back();
    keep(link, signals)
}

/// Guards this process: what the agents run as the same user neither reads its memory and
/// environment nor gets a dump of it, and what they leave falls to it.
///
/// # Errors
/// When the system refuses.
pub fn guard() -> io::Result<()> {
    set_dumpable(false)?;
    set_child_subreaper(true)?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    Ok(())
}

/// Whether programs can be labelled: the limit in which the label stands must be open.
pub(super) fn can_label() -> bool {
    getrlimit(Resource::RLIMIT_LOCKS).is_ok_and(|(_, hard)| hard == nix::libc::RLIM_INFINITY)
}

fn signals() -> io::Result<SignalFd> {
    let mut mask = SigSet::empty();
    SIGNALS.into_iter().for_each(|signal| mask.add(signal));
    mask.thread_block()?;
    Ok(SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?)
}
