//! Filter against `prlimit` for other processes.
//!
//! Landlock has no hook for it, and the kernel requires equal users only. With a limit of zero an agent of the
//! service's user could end the service and its process holder.
//!
//! Calls that change the priority or the processors of another process stay allowed: `sched_setaffinity`,
//! `sched_setscheduler`, `sched_setattr`, `setpriority` and `ioprio_set` take numbers of threads, and runtimes call
//! them for threads of their own. A filter cannot distinguish a thread of the caller from another process.

use libc::sock_filter;

use super::{
    ALLOW, ARCH_OFFSET, FIRST_ARG_OFFSET, NOT_IMPLEMENTED, SYSCALL_NUMBER_OFFSET, arch,
    errno_action, jump_if_at_least, jump_if_equal, load, return_action,
};

/// Number of `prlimit64`.
#[expect(clippy::cast_possible_truncation, reason = "a small number")]
const PRLIMIT: u32 = libc::SYS_prlimit64 as u32;
/// Number of `prlimit64` for 32-bit programs.
const COMPAT_PRLIMIT: u32 = if cfg!(target_arch = "x86_64") { 340 } else { 369 };

/// First number of x32, a second interface of x86-64 that no filter here supports. No other architecture has such
/// numbers.
const FIRST_X32_NUMBER: u32 = 0x4000_0000;

const LIMIT_ARG_LOW_OFFSET: u32 = FIRST_ARG_OFFSET + 16;
const LIMIT_ARG_HIGH_OFFSET: u32 = LIMIT_ARG_LOW_OFFSET + 4;

/// The kernel evaluates the steps up to 7 once for each number and remembers that a call is allowed whatever
/// its arguments are, so the filter costs nothing for other calls.
pub(super) static FILTER_PROGRAM: [sock_filter; 17] = [
    load(ARCH_OFFSET),
    jump_if_equal(arch::NATIVE, 0, 3),
    load(SYSCALL_NUMBER_OFFSET),
    jump_if_at_least(FIRST_X32_NUMBER, 12, 0),
    jump_if_equal(PRLIMIT, 3, 9),
    jump_if_equal(arch::COMPAT, 0, 10),
    load(SYSCALL_NUMBER_OFFSET),
    jump_if_equal(COMPAT_PRLIMIT, 0, 6),
    // The process itself is 0; its own number counts as another process, because no filter knows it. The kernel ignores
    // the upper word.
    load(FIRST_ARG_OFFSET),
    jump_if_equal(0, 4, 0),
    // Without a new limit the call reads the present one.
    load(LIMIT_ARG_LOW_OFFSET),
    jump_if_equal(0, 0, 3),
    load(LIMIT_ARG_HIGH_OFFSET),
    jump_if_equal(0, 0, 1),
    return_action(ALLOW),
    return_action(errno_action(libc::EPERM)),
    return_action(NOT_IMPLEMENTED),
];
