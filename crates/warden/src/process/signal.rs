//! Signals that reach only the intended process, even after PID reuse; and reaping of children.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use nix::errno::Errno;
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::Pid;

/// Sends a signal to a process if `is_target` still holds for its id. The pidfd is opened first: a fact that is true of
/// the id after that is true of the process that gets the signal.
pub(crate) fn send_signal(pid: i32, signal: Signal, is_target: impl Fn() -> bool) -> bool {
    let Ok(process) = open_pidfd(pid) else { return false };
    is_target() && send_to_pidfd(&process, signal).is_ok()
}

#[expect(unsafe_code, reason = "no safe wrapper at hand for a handle of a process")]
pub(crate) fn open_pidfd(pid: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: takes two numbers and gives a new descriptor, closed on exec, that nobody else has.
    unsafe {
        let fd = Errno::result(libc::syscall(libc::SYS_pidfd_open, pid, 0))?;
        let fd = i32::try_from(fd).map_err(|_odd| Errno::EBADF)?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

#[expect(unsafe_code, reason = "no safe wrapper at hand for a handle of a process")]
fn send_to_pidfd(process: &OwnedFd, signal: Signal) -> Result<(), Errno> {
    let (fd, signal) = (process.as_raw_fd(), signal as i32);
    let no_info = ptr::null::<libc::siginfo_t>();
    // SAFETY: the descriptor is open, and no information goes with the signal.
    let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, no_info, 0) };
    Errno::result(sent).map(|_| ())
}

/// Child that has ended.
pub(crate) struct ReapedChild {
    /// Process id of the child.
    pub(crate) pid: i32,
    /// Status from `wait`.
    pub(crate) status: i32,
    /// Microseconds of processor time, including waited-for children.
    pub(crate) cpu_micros: u64,
    /// Peak memory of one process in KiB.
    pub(crate) peak_memory_kib: u64,
}

/// Reaps a child that has ended: this one, or any.
#[expect(unsafe_code, reason = "no safe wrapper tells what a child has used")]
pub(crate) fn reap(pid: Option<Pid>) -> Option<ReapedChild> {
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    let wait_target = pid.map_or(-1, Pid::as_raw);
    // SAFETY: both places are ours and of the right type; all zero is a usage.
    let (pid, usage) = unsafe {
        let pid = libc::wait4(wait_target, &raw mut status, libc::WNOHANG, usage.as_mut_ptr());
        (pid, usage.assume_init())
    };
    let micros =
        |time: libc::timeval| time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_usec.unsigned_abs();
    (pid > 0).then(|| ReapedChild {
        pid,
        status,
        cpu_micros: micros(usage.ru_utime) + micros(usage.ru_stime),
        peak_memory_kib: usage.ru_maxrss.unsigned_abs(),
    })
}

/// Resets every signal to its default action, so that no child inherits an ignored one.
pub(crate) fn reset_signal_handlers() {
    for signal_kind in Signal::iterator() {
        _ = set_signal_handler(signal_kind, SigHandler::SigDfl); // Two of them cannot be changed.
    }
    reset_realtime_signals();
}

/// Resets the real-time signals to their default action, also those that the C library hides.
#[expect(unsafe_code, reason = "no safe wrapper names these signals")]
pub(crate) fn reset_realtime_signals() {
    const LAST_SIGNAL: i32 = 64;
    const MASK_BYTES: usize = 8;
    // Longer than the structure of the kernel, whose members are all zero for the default action.
    let default_action = [0_u64; 8];
    for number in Signal::SIGSYS as i32 + 1..=LAST_SIGNAL {
        let no_previous_action = ptr::null_mut::<u64>();
        // SAFETY: the kernel reads the action, writes nothing, and knows no handler afterwards.
        _ = unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                number,
                default_action.as_ptr(),
                no_previous_action,
                MASK_BYTES,
            )
        };
    }
}

/// Ignores the signal about a file that exceeds the limit of file sizes. By default it would end this process; without
/// it, the write fails.
pub(crate) fn ignore_file_size_signal() {
    _ = set_signal_handler(Signal::SIGXFSZ, SigHandler::SigIgn);
}

/// Sets the action of a signal to the default or to none, and returns the previous action.
#[expect(unsafe_code, reason = "what a signal does is a matter of the whole process")]
pub(crate) fn set_signal_handler(
    signal_kind: Signal,
    handler: SigHandler,
) -> Result<SigHandler, Errno> {
    // SAFETY: callers install no handler function.
    unsafe { signal(signal_kind, handler) }
}

#[cfg(test)]
mod tests {
    use super::{Signal, send_signal};
    use std::cell::RefCell;
    use std::fs;
    use std::process::{Child, Command};

    const LAST_PID_FILE: &str = "/proc/sys/kernel/ns_last_pid";

    fn spawn_sleep() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    fn kill_and_wait(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Returns a process that reuses the id of an ended one; `None` if another process got it.
    fn spawn_with_reused_pid(child: Child) -> Option<Child> {
        let number = child.id();
        kill_and_wait(child);
        fs::write(LAST_PID_FILE, (number - 1).to_string()).unwrap();
        let next = spawn_sleep();
        if next.id() == number {
            return Some(next);
        }
        kill_and_wait(next);
        None
    }

    #[test]
    fn no_signal_reaches_a_process_that_reuses_a_pid() {
        if fs::OpenOptions::new().write(true).open(LAST_PID_FILE).is_err() {
            return algonius_skips::skip("only root can choose process ids");
        }
        for _ in 0..200 {
            let target = spawn_sleep();
            let number = target.id().try_into().unwrap();
            let process = RefCell::new(Some(target));
            let sent = send_signal(number, Signal::SIGKILL, || {
                let next = process.take().and_then(spawn_with_reused_pid);
                process.replace(next);
                true
            });
            assert!(!sent);
            if let Some(mut successor) = process.take() {
                // No signal reaches a process that reuses the process id of an ended one
                assert_eq!(successor.try_wait().unwrap(), None, "a stranger was killed");
                return kill_and_wait(successor);
            }
        }
        panic!("no number was given again");
    }
}
