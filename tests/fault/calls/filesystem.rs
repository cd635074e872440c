//! Wrappers of the calls that create, rename and remove files and folders.

use libc::{AT_FDCWD, c_char, c_int, c_long, mode_t};

use super::super::plan::CallKind;
use super::{CallExtent, as_int, perform_planned_call};

/// Opens a file; counted when that may make it.
unsafe fn open_file(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    let call = libc::SYS_openat;
    // SAFETY: the caller's promise.
    let real_call = |_: CallExtent| unsafe { libc::syscall(call, folder, path, flags, mode) };
    as_int(if flags & libc::O_CREAT == 0 {
        real_call(CallExtent::Whole)
    } else {
        perform_planned_call(CallKind::File, "open", None, real_call)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { open_file(AT_FDCWD, path, flags, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { open_file(AT_FDCWD, path, flags, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn openat64(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { open_file(folder, path, flags, mode) }
}

fn perform_file_call(name: &str, real_call: impl FnOnce() -> c_long) -> c_int {
    as_int(perform_planned_call(CallKind::File, name, None, |_| real_call()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mkdir(path: *const c_char, mode: mode_t) -> c_int {
    // SAFETY: the caller's promise.
    perform_file_call("mkdir", || unsafe { libc::syscall(libc::SYS_mkdirat, AT_FDCWD, path, mode) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    let call = libc::SYS_renameat2;
    // SAFETY: the caller's promise.
    perform_file_call("rename", || unsafe { libc::syscall(call, AT_FDCWD, from, AT_FDCWD, to, 0) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    perform_file_call("unlink", || unsafe { libc::syscall(libc::SYS_unlinkat, AT_FDCWD, path, 0) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unlinkat(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    perform_file_call("unlinkat", || unsafe {
        libc::syscall(libc::SYS_unlinkat, folder, path, flags)
    })
}
