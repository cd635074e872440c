//! Probe of bubblewrap: whether it can create every namespace that a view needs.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::{FilesystemView, WrapperCommand};
use crate::process::signal::open_pidfd;

/// Time in milliseconds after which a probe is ended. Bubblewrap needs a few.
const PROBE_TIMEOUT_MS: u16 = 5000;
/// Time in milliseconds that a killed probe has to end.
const KILLED_PROBE_TIMEOUT_MS: u16 = 200;
/// Texts of the errors that the machine may not have the next time.
const TRANSIENT_ERRORS: [&str; 3] =
    ["Resource temporarily unavailable", "Cannot allocate memory", "Too many open files"];

/// Returns true if bubblewrap works on this machine with all the required namespaces.
///
/// # Errors
/// Fails if that cannot be determined now: bubblewrap does not end, or the machine lacks resources. A sandbox that
/// works must not count as absent because of that.
pub(crate) fn is_usable(bubblewrap: &Path) -> io::Result<bool> {
    let view = FilesystemView { workspace: PathBuf::from("/"), ..FilesystemView::default() };
    let Ok(WrapperCommand { program, args }) = view.build_wrapper_command(bubblewrap, bubblewrap)
    else {
        return Ok(false);
    };
    let mut command = Command::new(program);
    // Without `--as-pid-1`, an intermediate process of bubblewrap would end later and become an orphan of this process.
    command.args(args).args(["--as-pid-1", "--", "true"]).env("LC_ALL", "C");
    run_probe(command, PROBE_TIMEOUT_MS)
}

fn run_probe(mut command: Command, timeout_ms: u16) -> io::Result<bool> {
    // A file, because a process that outlives the probe would keep a pipe open.
    let mut messages = File::from(memfd_create("bubblewrap", MFdFlags::MFD_CLOEXEC)?);
    command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(messages.try_clone()?);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if is_transient_error(&error.to_string()) => return Err(error),
        Err(_) => return Ok(false),
    };
    let wait_result = wait_for_end(&mut child, timeout_ms);
    if !matches!(wait_result, Ok(Some(_))) {
        kill_probe(&mut child)?;
    }
    let status = wait_result?.ok_or_else(|| {
        io::Error::new(ErrorKind::TimedOut, format!("it did not end within {timeout_ms} ms"))
    })?;
    messages.rewind()?;
    let mut text = Vec::new();
    messages.read_to_end(&mut text)?;
    evaluate_probe(status, &String::from_utf8_lossy(&text))
}

/// Returns the result of a probe that has ended.
fn evaluate_probe(status: ExitStatus, messages: &str) -> io::Result<bool> {
    if status.signal() == Some(libc::SIGKILL) {
        return Err(io::Error::other("it was killed"));
    }
    match messages.lines().find(|line| is_transient_error(line)) {
        Some(reason) if !status.success() => Err(io::Error::other(reason)),
        _ => Ok(status.success()),
    }
}

/// Returns true if bubblewrap, or the system, reports a lack of resources in this message.
#[must_use]
pub fn is_transient_error(message: &str) -> bool {
    TRANSIENT_ERRORS.iter().any(|transient| message.contains(transient))
}

/// Waits for the end of the probe; returns `None` if it has not ended after this time in milliseconds.
fn wait_for_end(child: &mut Child, timeout_ms: u16) -> io::Result<Option<ExitStatus>> {
    let pidfd = open_pidfd(child.id().try_into().map_err(io::Error::other)?)?;
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    epoll.add(&pidfd, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
    // A signal to this process begins the time anew.
    while epoll.wait(&mut [EpollEvent::empty()], timeout_ms) == Err(Errno::EINTR) {}
    child.try_wait()
}

/// Ends the probe with its descendants. A process that the kernel does not let go is left.
fn kill_probe(child: &mut Child) -> io::Result<()> {
    let group = Pid::from_raw(child.id().try_into().map_err(io::Error::other)?);
    killpg(group, Signal::SIGKILL)?;
    wait_for_end(child, KILLED_PROBE_TIMEOUT_MS).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a script in the place of bubblewrap.
    fn probe_script(script: &str, timeout_ms: u16) -> io::Result<bool> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run_probe(command, timeout_ms)
    }

    #[test]
    fn a_probe_that_does_not_end_is_an_error() {
        let error = probe_script("sleep 60 & sleep 60", 50).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    }

    #[test]
    fn a_lack_of_resources_is_no_verdict_about_bubblewrap() {
        let long = 60_000;
        for script in [
            "echo 'bwrap: Creating new namespace failed: Resource temporarily unavailable' >&2; exit 1",
            "echo 'bwrap: Cant fork: Cannot allocate memory' >&2; exit 1",
            "kill -KILL $$",
        ] {
            assert!(probe_script(script, long).is_err(), "{script}");
        }
        let refused = "echo 'bwrap: No permissions to create new namespace' >&2; exit 1";
        assert!(!probe_script(refused, long).unwrap());
        assert!(!probe_script("kill -SEGV $$", long).unwrap());
        assert!(probe_script("echo 'Too many open files' >&2", long).unwrap());
    }
}
