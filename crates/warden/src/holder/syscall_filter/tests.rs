//! Answers of the filters for every architecture, from an interpreter of their steps: no machine has all of them.

use libc::{EACCES, EPERM, sock_filter};

use super::{ALLOW, NOT_IMPLEMENTED, arch, errno_action, network, prlimit};

/// System call of a program: architecture, number and arguments.
struct SystemCall(u32, i64, [u64; 6]);

impl SystemCall {
    /// Returns the word of `struct seccomp_data` at an offset.
    fn word(&self, offset: u32) -> u32 {
        let Self(arch, number, args) = self;
        let halves = args.iter().flat_map(|arg| [*arg, arg >> 32]);
        let words = [number.cast_unsigned(), u64::from(*arch), 0, 0].into_iter().chain(halves);
        let word = words.map(|word| word & u64::from(u32::MAX)).nth(offset as usize / 4).unwrap();
        word.try_into().unwrap()
    }

    /// Returns the action of a filter for the call.
    fn action(&self, filter: &[sock_filter]) -> u32 {
        let (mut step, mut word) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = filter[step];
            let is_true = match u32::from(code) {
                0x20 => {
                    word = self.word(k);
                    step += 1;
                    continue;
                }
                0x15 => word == k,
                0x35 => word >= k,
                0x06 => return k,
                _ => panic!("instruction {code:#x} at {step}"),
            };
            step += 1 + usize::from(if is_true { jt } else { jf });
        }
    }
}

/// Numbers of `socket`, `socketpair`, `request_key` and `prlimit64` for 32-bit programs.
const COMPAT_NUMBERS: [i64; 4] =
    if cfg!(target_arch = "x86_64") { [359, 360, 287, 340] } else { [281, 288, 310, 369] };
const SOCKETCALL: i64 = 102;
const IO_URING_SETUP: i64 = 425;

const UNIX: u64 = libc::AF_UNIX as u64;
const INET: u64 = libc::AF_INET as u64;
const INET6: u64 = libc::AF_INET6 as u64;
const NETLINK: u64 = libc::AF_NETLINK as u64;
const VSOCK: u64 = libc::AF_VSOCK as u64;

/// Returns the actions for a socket and for a pair of sockets, of 64-bit and of 32-bit programs.
fn socket_actions(filter: &[sock_filter], family: u64, protocol: u64) -> Vec<u32> {
    let args = [family | 7 << 32, 1, protocol | 7 << 32, 0, 0, 0];
    let calls = [
        SystemCall(arch::NATIVE, libc::SYS_socket, args),
        SystemCall(arch::NATIVE, libc::SYS_socketpair, args),
        SystemCall(arch::COMPAT, COMPAT_NUMBERS[0], args),
        SystemCall(arch::COMPAT, COMPAT_NUMBERS[1], args),
    ];
    calls.iter().map(|call| call.action(filter)).collect()
}

#[test]
fn sockets_are_refused_by_their_family() {
    let refused = errno_action(EACCES);
    let namespace_filter = &network::EMPTY_NAMESPACE_FILTER;
    for (family, protocol, no_network_action, namespace_action) in [
        (UNIX, 0, ALLOW, ALLOW),
        (NETLINK, 0, ALLOW, ALLOW),
        (NETLINK, 2, refused, refused),
        (INET, 0, refused, ALLOW),
        (INET, 262, refused, ALLOW),
        (INET6, 17, refused, ALLOW),
        (VSOCK, 0, refused, refused),
        (0, 0, refused, refused),
        (200, 0, refused, refused),
    ] {
        let actions = socket_actions(&network::NO_NETWORK_FILTER, family, protocol);
        assert_eq!(actions, [no_network_action; 4], "{family} {protocol}");
        let actions = socket_actions(namespace_filter, family, protocol);
        assert_eq!(actions, [namespace_action; 4], "{family} {protocol}");
    }
}

#[test]
fn other_calls_that_reach_a_network_are_refused() {
    let args = |first| [first, 0, 0, 0, 0, 0];
    for filter in [&network::NO_NETWORK_FILTER, &network::EMPTY_NAMESPACE_FILTER] {
        for (call, expected) in [
            (SystemCall(arch::NATIVE, IO_URING_SETUP, args(8)), NOT_IMPLEMENTED),
            (SystemCall(arch::COMPAT, IO_URING_SETUP, args(8)), NOT_IMPLEMENTED),
            (SystemCall(arch::NATIVE, libc::SYS_request_key, args(1)), NOT_IMPLEMENTED),
            (SystemCall(arch::COMPAT, COMPAT_NUMBERS[2], args(1)), NOT_IMPLEMENTED),
            (SystemCall(arch::COMPAT, SOCKETCALL, args(1)), errno_action(EACCES)),
            (SystemCall(arch::COMPAT, SOCKETCALL, args(8)), errno_action(EACCES)),
            (SystemCall(arch::COMPAT, SOCKETCALL, args(3)), ALLOW),
            (SystemCall(arch::NATIVE, SOCKETCALL, args(1)), ALLOW),
            (SystemCall(arch::NATIVE, libc::SYS_connect, args(2)), ALLOW),
            (SystemCall(arch::NATIVE, libc::SYS_openat, args(1)), ALLOW),
        ] {
            assert_eq!(call.action(filter), expected, "{:x} {}", call.0, call.1);
        }
    }
}

#[test]
fn limits_of_other_processes_are_refused() {
    let args = |pid, new_limit| [pid, 7, new_limit, 0, 0, 0];
    for (call, expected) in [
        (SystemCall(arch::NATIVE, libc::SYS_prlimit64, args(1, 1 << 32)), errno_action(EPERM)),
        (SystemCall(arch::NATIVE, libc::SYS_prlimit64, args(1, 1)), errno_action(EPERM)),
        (SystemCall(arch::NATIVE, libc::SYS_prlimit64, args(1, 0)), ALLOW),
        (SystemCall(arch::NATIVE, libc::SYS_prlimit64, args(0, 1)), ALLOW),
        (SystemCall(arch::COMPAT, COMPAT_NUMBERS[3], args(1, 1)), errno_action(EPERM)),
        (SystemCall(arch::COMPAT, COMPAT_NUMBERS[3], args(0, 1)), ALLOW),
        (SystemCall(arch::NATIVE, 0x4000_0000 + libc::SYS_socket, args(2, 0)), NOT_IMPLEMENTED),
        (SystemCall(0x1234, 1, args(0, 0)), NOT_IMPLEMENTED),
        (SystemCall(arch::NATIVE, libc::SYS_read, args(1, 1)), ALLOW),
    ] {
        assert_eq!(call.action(&prlimit::FILTER_PROGRAM), expected, "{:x} {}", call.0, call.1);
    }
}
