//! Seccomp filters of a confined program: they refuse system calls that a Landlock domain does not restrict.
//!
//! A filter judges a call by its number and by arguments that are numbers; it cannot read memory. The kernel evaluates
//! all filters of a process, and the strictest answer counts.

mod network;
mod prlimit;
#[cfg(test)]
mod tests;

use std::ffi::{c_long, c_uint, c_ulong};

use libc::{sock_filter, sock_fprog};

use crate::confinement::network_access::NetworkAccess;
use crate::confinement::root_capabilities::check_call;

/// Number of the architecture in `linux/audit.h`, and of the 32-bit one whose programs it executes too.
#[cfg(target_arch = "x86_64")]
mod arch {
    pub(super) const NATIVE: u32 = 0xc000_003e;
    pub(super) const COMPAT: u32 = 0x4000_0003;
}
#[cfg(target_arch = "aarch64")]
mod arch {
    pub(super) const NATIVE: u32 = 0xc000_00b7;
    pub(super) const COMPAT: u32 = 0x4000_0028;
}

/// Offsets in `struct seccomp_data`. The two words of an argument are little-endian here.
const SYSCALL_NUMBER_OFFSET: u32 = 0;
const ARCH_OFFSET: u32 = 4;
const FIRST_ARG_OFFSET: u32 = 16;

const ALLOW: u32 = 0x7fff_0000;
/// The call does not exist: programs then use another one.
const NOT_IMPLEMENTED: u32 = errno_action(libc::ENOSYS);

/// Returns the action that fails the call with this error number.
const fn errno_action(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno.unsigned_abs()
}

const fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
}

/// Skips `then_skip` steps if the loaded word is `value`, and `otherwise_skip` steps if not.
const fn jump_if_equal(value: u32, then_skip: u8, otherwise_skip: u8) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, then_skip, otherwise_skip, value)
}

const fn jump_if_at_least(value: u32, then_skip: u8, otherwise_skip: u8) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, then_skip, otherwise_skip, value)
}

const fn return_action(value: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, value)
}

#[expect(clippy::cast_possible_truncation, reason = "codes are numbers below 256")]
const fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

/// Refuses changes of other processes' resource limits, in this process and in all that it starts.
///
/// # Errors
/// Error number of the call that failed.
#[expect(unsafe_code, reason = "runs in the child, between two programs")]
pub(super) unsafe fn refuse_foreign_prlimit() -> Result<(), i32> {
    // SAFETY: as the caller promises.
    unsafe { install_filter(&prlimit::FILTER_PROGRAM) }
}

/// Refuses sockets of the networks that the program may not use, in this process and in all that it starts.
///
/// # Errors
/// Error number of the call that failed.
#[expect(unsafe_code, reason = "runs in the child, between two programs")]
pub(super) unsafe fn restrict_network(access: NetworkAccess) -> Result<(), i32> {
    let filter = match access {
        NetworkAccess::Full => return Ok(()),
        NetworkAccess::EmptyNamespace => &network::EMPTY_NAMESPACE_FILTER,
        NetworkAccess::Refused => &network::NO_NETWORK_FILTER,
    };
    // SAFETY: as the caller promises.
    unsafe { install_filter(filter) }
}

/// Installs a filter permanently. `PR_SET_NO_NEW_PRIVS` is set before.
#[expect(unsafe_code, reason = "runs in the child, between two programs")]
unsafe fn install_filter(filter: &'static [sock_filter]) -> Result<(), i32> {
    #[expect(clippy::cast_possible_truncation, reason = "fewer than 30 steps")]
    let program = sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // Kernels before 5.16 slow a filtered process down by a mitigation unless this flag is set.
    let flags: c_ulong = libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    let mode: c_uint = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: a plain system call. The kernel copies the program, and reads it only.
    let installed: c_long =
        unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) };
    // SAFETY: as here.
    unsafe { check_call(installed) }
}
