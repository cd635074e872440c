//! Seccomp filter of a confined program.
//!
//! Landlock has no hook for `prlimit`, and the kernel requires equal users only. With a limit of zero an agent
//! of the service's user could end the service and its process holder. A filter can judge these arguments,
//! because they are numbers.
//!
//! Calls that change the priority or the processors of another process stay allowed: `sched_setaffinity`,
//! `sched_setscheduler`, `sched_setattr`, `setpriority` and `ioprio_set` take numbers of threads, and runtimes call
//! them for threads of their own. A filter cannot distinguish a thread of the caller from another process.

use std::ffi::{c_long, c_uint, c_ulong};

use libc::{sock_filter, sock_fprog};

use crate::confinement::root_capabilities::check_call;

/// Constants of an architecture: its number in `linux/audit.h`, the number for the 32-bit programs that it executes
/// too, and the number of `prlimit64` for these.
#[cfg(target_arch = "x86_64")]
mod numbers {
    pub(super) const NATIVE_ARCH: u32 = 0xc000_003e;
    pub(super) const COMPAT_ARCH: u32 = 0x4000_0003;
    pub(super) const COMPAT_PRLIMIT: u32 = 340;
}
#[cfg(target_arch = "aarch64")]
mod numbers {
    pub(super) const NATIVE_ARCH: u32 = 0xc000_00b7;
    pub(super) const COMPAT_ARCH: u32 = 0x4000_0028;
    pub(super) const COMPAT_PRLIMIT: u32 = 369;
}

/// Number of `prlimit64`, which is the same on both architectures.
#[expect(clippy::cast_possible_truncation, reason = "a small number")]
const PRLIMIT: u32 = libc::SYS_prlimit64 as u32;

/// First number of x32, a second interface of x86-64 that the filter does not support. No other architecture has such
/// numbers.
const X32: u32 = 0x4000_0000;

/// Offsets in `struct seccomp_data`. The two words of an argument are little-endian here.
const NUMBER_OFFSET: u32 = 0;
const ARCH_OFFSET: u32 = 4;
const PID_ARG_OFFSET: u32 = 16;
const LIMIT_ARG_LOW_OFFSET: u32 = 32;
const LIMIT_ARG_HIGH_OFFSET: u32 = 36;

const ALLOW: u32 = 0x7fff_0000;
const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
const UNKNOWN: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

const fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
}

/// Skips `then` steps if the loaded word is `value`, and `otherwise` steps if not.
const fn equal(value: u32, then: u8, otherwise: u8) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, then, otherwise, value)
}

const fn at_least(value: u32, then: u8, otherwise: u8) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, then, otherwise, value)
}

const fn return_action(value: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, value)
}

#[expect(clippy::cast_possible_truncation, reason = "codes are numbers below 256")]
const fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

/// The kernel evaluates the steps up to 7 once for each number and remembers that a call is allowed whatever
/// its arguments are, so the filter costs nothing for other calls.
static FILTER_PROGRAM: [sock_filter; 17] = [
    load(ARCH_OFFSET),
    equal(numbers::NATIVE_ARCH, 0, 3),
    load(NUMBER_OFFSET),
    at_least(X32, 12, 0),
    equal(PRLIMIT, 3, 9),
    equal(numbers::COMPAT_ARCH, 0, 10),
    load(NUMBER_OFFSET),
    equal(numbers::COMPAT_PRLIMIT, 0, 6),
    // The process itself is 0; its own number counts as another process, because no filter knows it. The kernel ignores
    // the upper word.
    load(PID_ARG_OFFSET),
    equal(0, 4, 0),
    // Without a new limit the call reads the present one.
    load(LIMIT_ARG_LOW_OFFSET),
    equal(0, 0, 3),
    load(LIMIT_ARG_HIGH_OFFSET),
    equal(0, 0, 1),
    return_action(ALLOW),
    return_action(REFUSE),
    return_action(UNKNOWN),
];

/// Filters the system calls of this process and of all that it starts, permanently. `PR_SET_NO_NEW_PRIVS` is
/// set before.
///
/// # Errors
/// Error number of the call that failed.
#[expect(unsafe_code, reason = "runs in the child, between two programs")]
pub(super) unsafe fn install() -> Result<(), i32> {
    #[expect(clippy::cast_possible_truncation, reason = "17 steps")]
    let program =
        sock_fprog { len: FILTER_PROGRAM.len() as u16, filter: FILTER_PROGRAM.as_ptr().cast_mut() };
    // Kernels before 5.16 slow a filtered process down by a mitigation unless this flag is set.
    let flags: c_ulong = libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    let mode: c_uint = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: a plain system call. The kernel copies the program, and reads it only.
    let installed: c_long =
        unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) };
    // SAFETY: as here.
    unsafe { check_call(installed) }
}
