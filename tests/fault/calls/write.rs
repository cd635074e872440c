//! Wrappers of the calls that write bytes to files, pipes, standard error and sockets.

use libc::{c_int, c_long, c_void, iovec, msghdr, off_t, size_t, ssize_t};

use super::super::plan::CallKind;
use super::{CallExtent, as_int, perform_planned_call};

/// What bytes to this descriptor are; `None` for what wakes threads, and for what goes to callers.
fn call_kind(fd: c_int) -> Option<CallKind> {
    // SAFETY: all zero is a place for the answer, which is as long as the system expects.
    let mode = unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        if libc::fstat(fd, &raw mut stat) < 0 {
            return None;
        }
        stat.st_mode & libc::S_IFMT
    };
    match mode {
        libc::S_IFREG | libc::S_IFIFO if fd == libc::STDERR_FILENO => Some(CallKind::Log),
        libc::S_IFREG | libc::S_IFIFO => Some(CallKind::Write),
        _ => None,
    }
}

fn write_bytes(fd: c_int, name: &str, real_call: impl FnOnce(CallExtent) -> c_long) -> ssize_t {
    let result = match call_kind(fd) {
        Some(kind) => perform_planned_call(kind, name, Some(fd), real_call),
        None => real_call(CallExtent::Whole),
    };
    ssize_t::try_from(result).unwrap_or(-1)
}

const fn bytes_to_write(extent: CallExtent, count: size_t) -> size_t {
    match extent {
        CallExtent::Whole => count,
        CallExtent::Half => count / 2,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn write(fd: c_int, bytes: *const c_void, count: size_t) -> ssize_t {
    // SAFETY: the caller's promise, of no more bytes.
    write_bytes(fd, "write", |extent| unsafe {
        libc::syscall(libc::SYS_write, fd, bytes, bytes_to_write(extent, count))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the caller's promise.
    write_bytes(fd, "writev", |_| unsafe { libc::syscall(libc::SYS_writev, fd, parts, count) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(
    fd: c_int,
    bytes: *const c_void,
    count: size_t,
    offset: off_t,
) -> ssize_t {
    let call = libc::SYS_pwrite64;
    // SAFETY: the caller's promise, of no more bytes.
    write_bytes(fd, "pwrite64", |extent| unsafe {
        libc::syscall(call, fd, bytes, bytes_to_write(extent, count), offset)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ftruncate64(fd: c_int, length: off_t) -> c_int {
    let call = libc::SYS_ftruncate;
    // SAFETY: plain numbers.
    as_int(perform_planned_call(CallKind::Write, "ftruncate64", Some(fd), |_| unsafe {
        libc::syscall(call, fd, length)
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fsync(fd: c_int) -> c_int {
    // SAFETY: a plain number.
    as_int(perform_planned_call(CallKind::Write, "fsync", Some(fd), |_| unsafe {
        libc::syscall(libc::SYS_fsync, fd)
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fdatasync(fd: c_int) -> c_int {
    let call = libc::SYS_fdatasync;
    // SAFETY: a plain number.
    as_int(perform_planned_call(CallKind::Write, "fdatasync", Some(fd), |_| unsafe {
        libc::syscall(call, fd)
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sendmsg(socket: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    let call = libc::SYS_sendmsg;
    // SAFETY: the caller's promise.
    let real_call = |_| unsafe { libc::syscall(call, socket, message, flags) };
    ssize_t::try_from(perform_planned_call(CallKind::Send, "sendmsg", Some(socket), real_call))
        .unwrap_or(-1)
}
