//! Filters against sockets of networks.
//!
//! Landlock restricts `bind` and `connect` of ordinary TCP. UDP, Multipath TCP, raw packets, virtual machine sockets
//! and a connection that `sendto` opens (TCP Fast Open) pass it. So a program without network gets no socket at all,
//! except Unix sockets and the protocol of netlink by which programs list network devices. A program in a network
//! namespace without devices may use the internet protocols there; others ignore namespaces.
//!
//! Three further calls reach a network:
//! - `io_uring_setup`, whose operations create sockets, does not exist for the program;
//! - `request_key`, for which the kernel may start a program that looks up a name (`key.dns_resolver`), does not exist
//!   either;
//! - `socketcall` in 32-bit programs on x86-64 creates no socket: it has the address family in memory, which no filter
//!   can read.

use libc::sock_filter;

use super::{
    ALLOW, ARCH_OFFSET, FIRST_ARG_OFFSET, NOT_IMPLEMENTED, SYSCALL_NUMBER_OFFSET, arch,
    errno_action, jump_if_equal, load, return_action,
};

const SOCKET: u32 = syscall_number(libc::SYS_socket);
const SOCKETPAIR: u32 = syscall_number(libc::SYS_socketpair);
const REQUEST_KEY: u32 = syscall_number(libc::SYS_request_key);
/// The same number for all programs.
const IO_URING_SETUP: u32 = syscall_number(libc::SYS_io_uring_setup);

/// Numbers of `socket`, `socketpair` and `request_key` for 32-bit programs.
const COMPAT_NUMBERS: [u32; 3] =
    if cfg!(target_arch = "x86_64") { [359, 360, 287] } else { [281, 288, 310] };
/// Number of `socketcall` for 32-bit programs on x86-64; other kernels have no such call.
const COMPAT_SOCKETCALL: u32 = 102;
/// First arguments of `socketcall` that create sockets: `SYS_SOCKET` and `SYS_SOCKETPAIR`.
const CREATE_SOCKET: u32 = 1;
const CREATE_PAIR: u32 = 8;

const PROTOCOL_ARG_OFFSET: u32 = FIRST_ARG_OFFSET + 16;

const UNIX: u32 = libc::AF_UNIX.unsigned_abs();
const NETLINK: u32 = libc::AF_NETLINK.unsigned_abs();
const NETLINK_ROUTE: u32 = libc::NETLINK_ROUTE.unsigned_abs();

/// Filter for a program without network.
pub(super) static NO_NETWORK_FILTER: [sock_filter; 27] = filter_program([UNIX; 3]);

/// Filter for a program in a network namespace without devices.
pub(super) static EMPTY_NAMESPACE_FILTER: [sock_filter; 27] =
    filter_program([UNIX, libc::AF_INET.unsigned_abs(), libc::AF_INET6.unsigned_abs()]);

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number")]
const fn syscall_number(call: libc::c_long) -> u32 {
    call as u32
}

/// Continues `step` with step `then` if the loaded word is `value`, and otherwise with the next step.
const fn jump_if(step: u8, value: u32, then: u8) -> sock_filter {
    jump_if_equal(value, then - step - 1, 0)
}

/// Continues `step` with one of two steps.
const fn branch_if(step: u8, value: u32, then: u8, otherwise: u8) -> sock_filter {
    jump_if_equal(value, then - step - 1, otherwise - step - 1)
}

/// Returns the filter that permits sockets of these address families, and lists of network devices.
///
/// The filter of limits, which every program has too, refuses the numbers of x32 and other architectures.
const fn filter_program(families: [u32; 3]) -> [sock_filter; 27] {
    const COMPAT_STEP: u8 = 7;
    const FAMILY_STEP: u8 = 17;
    const ALLOWED_STEP: u8 = 24;
    const REFUSED_STEP: u8 = 25;
    const ABSENT_CALL_STEP: u8 = 26;
    let [compat_socket, compat_socketpair, compat_request_key] = COMPAT_NUMBERS;
    [
        load(ARCH_OFFSET),
        branch_if(1, arch::NATIVE, 2, COMPAT_STEP),
        load(SYSCALL_NUMBER_OFFSET),
        jump_if(3, SOCKET, FAMILY_STEP),
        jump_if(4, SOCKETPAIR, FAMILY_STEP),
        jump_if(5, IO_URING_SETUP, ABSENT_CALL_STEP),
        branch_if(6, REQUEST_KEY, ABSENT_CALL_STEP, ALLOWED_STEP),
        branch_if(7, arch::COMPAT, 8, ALLOWED_STEP),
        load(SYSCALL_NUMBER_OFFSET),
        jump_if(9, compat_socket, FAMILY_STEP),
        jump_if(10, compat_socketpair, FAMILY_STEP),
        jump_if(11, IO_URING_SETUP, ABSENT_CALL_STEP),
        jump_if(12, compat_request_key, ABSENT_CALL_STEP),
        branch_if(13, COMPAT_SOCKETCALL, 14, ALLOWED_STEP),
        load(FIRST_ARG_OFFSET),
        jump_if(15, CREATE_SOCKET, REFUSED_STEP),
        branch_if(16, CREATE_PAIR, REFUSED_STEP, ALLOWED_STEP),
        // The kernel ignores the upper words of both arguments.
        load(FIRST_ARG_OFFSET),
        jump_if(18, families[0], ALLOWED_STEP),
        jump_if(19, families[1], ALLOWED_STEP),
        jump_if(20, families[2], ALLOWED_STEP),
        branch_if(21, NETLINK, 22, REFUSED_STEP),
        load(PROTOCOL_ARG_OFFSET),
        branch_if(23, NETLINK_ROUTE, ALLOWED_STEP, REFUSED_STEP),
        return_action(ALLOW),
        return_action(errno_action(libc::EACCES)),
        return_action(NOT_IMPLEMENTED),
    ]
}
