//! What makes and removes files and folders.

use libc::{AT_FDCWD, c_char, c_int, c_long, mode_t};

use super::super::plan::Kind;
use super::{Extent, make, short};

/// Opens a file; counted when that may make it.
unsafe fn opened(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    let call = libc::SYS_openat;
    // SAFETY: the caller's promise.
    let real = |_: Extent| unsafe { libc::syscall(call, folder, path, flags, mode) };
    short(if flags & libc::O_CREAT == 0 {
        real(Extent::Whole)
    } else {
        make(Kind::File, "open", None, real)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { opened(AT_FDCWD, path, flags, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { opened(AT_FDCWD, path, flags, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn openat64(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { opened(folder, path, flags, mode) }
}

fn counted(name: &str, real: impl FnOnce() -> c_long) -> c_int {
    short(make(Kind::File, name, None, |_| real()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mkdir(path: *const c_char, mode: mode_t) -> c_int {
    // SAFETY: the caller's promise.
    counted("mkdir", || unsafe { libc::syscall(libc::SYS_mkdirat, AT_FDCWD, path, mode) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    let call = libc::SYS_renameat2;
    // SAFETY: the caller's promise.
    counted("rename", || unsafe { libc::syscall(call, AT_FDCWD, from, AT_FDCWD, to, 0) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    counted("unlink", || unsafe { libc::syscall(libc::SYS_unlinkat, AT_FDCWD, path, 0) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unlinkat(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    counted("unlinkat", || unsafe { libc::syscall(libc::SYS_unlinkat, folder, path, flags) })
}
