//! State that a process inherits from its parent, and that would change its own work or that of its programs.

mod hard_limits;
pub(crate) mod soft_limits;

use std::io;

use nix::libc::{SYS_close_range, c_uint, syscall};
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::stat::{Mode, umask};

use self::hard_limits::InsufficientLimit;
use crate::process::signal::{ignore_file_size_signal, reset_realtime_signals, set_signal_handler};

/// Signals whose action stays. `nohup` ignores the first, and shells ignore the next two in background commands. The
/// Rust runtime handles the last three: a write to a closed pipe fails, and a stack overflow is reported.
const PRESERVED_SIGNALS: [Signal; 6] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGPIPE,
    Signal::SIGSEGV,
    Signal::SIGBUS,
];
/// Bits of the umask that keep users outside of the group from changing new files.
const OTHERS_WRITE_MASK: Mode = Mode::S_IWOTH;
/// Bits that are added to an umask without [`OTHERS_WRITE_MASK`].
const DEFAULT_UMASK: Mode = Mode::from_bits_truncate(0o022);
/// First descriptor after the standard streams.
const FIRST_OTHER_FD: c_uint = 3;

/// Inherited state that was replaced, and limits that cannot be replaced.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InheritedProcessState {
    /// Names of the signals that the parent ignored or blocked.
    pub suppressed_signals: Vec<&'static str>,
    /// Umask of the parent and the one in its place, if it was replaced.
    pub replaced_umask: Option<(u32, u32)>,
    /// Hard limits that are too small for a service.
    pub insufficient_limits: Vec<InsufficientLimit>,
}

/// Replaces inherited state: blocked and ignored signals, bits of the umask that open files to others or close them to
/// their owner, soft limits below the hard ones, and descriptors that programs of this process would inherit. Must run
/// before the process has threads.
///
/// # Errors
/// Fails if the system refuses it.
pub fn replace_inherited_state() -> io::Result<InheritedProcessState> {
    let mut blocked_signals = SigSet::empty();
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), Some(&mut blocked_signals))?;
    let mut suppressed_signals = Vec::new();
    for signal in Signal::iterator() {
        let is_replaceable = !PRESERVED_SIGNALS.contains(&signal) && signal != Signal::SIGXFSZ;
        let replace = || set_signal_handler(signal, SigHandler::SigDfl);
        let was_ignored = is_replaceable && matches!(replace(), Ok(SigHandler::SigIgn));
        if was_ignored || blocked_signals.contains(signal) {
            suppressed_signals.push(signal.as_str());
        }
    }
    reset_realtime_signals();
    ignore_file_size_signal();
    soft_limits::raise();
    close_other_descriptors_on_exec();
    let (replaced_umask, insufficient_limits) =
        (replace_umask(), hard_limits::insufficient_limits());
    Ok(InheritedProcessState { suppressed_signals, replaced_umask, insufficient_limits })
}

/// Replaces the umask if it must not apply to files of agents; returns the previous and the new one in that case.
fn replace_umask() -> Option<(u32, u32)> {
    let inherited_umask = umask(DEFAULT_UMASK);
    let mut new_umask = inherited_umask - Mode::S_IRWXU;
    if !new_umask.contains(OTHERS_WRITE_MASK) {
        new_umask |= DEFAULT_UMASK;
    }
    umask(new_umask);
    (new_umask != inherited_umask).then(|| (inherited_umask.bits(), new_umask.bits()))
}

/// Closes inherited descriptors at the start of the next program. An open pipe or lock of the parent would otherwise
/// stay open as long as a program of this process runs.
#[expect(unsafe_code, reason = "no safe wrapper knows `close_range`")]
fn close_other_descriptors_on_exec() {
    // SAFETY: changes a flag of descriptors, and closes none. Old kernels refuse the flag, which changes nothing.
    _ = unsafe {
        syscall(SYS_close_range, FIRST_OTHER_FD, c_uint::MAX, nix::libc::CLOSE_RANGE_CLOEXEC)
    };
}
