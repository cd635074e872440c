//! Wrappers of the calls that create processes and the descriptors for them.

use std::ffi::CStr;
use std::mem::transmute;
use std::ptr;

use libc::{c_char, c_int, c_long, c_uint, c_void, pid_t};

use super::super::plan::CallKind;
use super::{as_int, perform_planned_call};

/// Variables by which the process holder also loads this library; its environment is empty otherwise.
const PASSED_VARIABLE_PREFIXES: [&[u8]; 2] = [b"LD_PRELOAD=", b"ALGONIUS_FAULT_"];

type ChildEntry = extern "C" fn(*mut c_void) -> c_int;
type CloneFn = unsafe extern "C" fn(
    ChildEntry,
    *mut c_void,
    c_int,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_void,
) -> c_int;
type SpawnFn = unsafe extern "C" fn(
    *mut pid_t,
    *const c_char,
    *const c_void,
    *const c_void,
    *const *const c_char,
    *const *const c_char,
) -> c_int;

/// The function that this library stands in for.
fn next_symbol(name: &CStr) -> *mut c_void {
    // SAFETY: a string of C; nobody unloads the system's library.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clone(
    enter: ChildEntry,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    parent_tid: *mut c_void,
    tls: *mut c_void,
    child_tid: *mut c_void,
) -> c_int {
    as_int(perform_planned_call(CallKind::Spawn, "clone", None, |_| {
        // SAFETY: the system's `clone` has this shape; the rest is the caller's promise.
        let result = unsafe {
            let real_clone: Option<CloneFn> = transmute(next_symbol(c"clone"));
            real_clone
                .map_or(-1, |real| real(enter, stack, flags, argument, parent_tid, tls, child_tid))
        };
        c_long::from(result)
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn execve(
    path: *const c_char,
    args: *const *const c_char,
    env: *const *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let real_call = |_| unsafe { libc::syscall(libc::SYS_execve, path, args, env) };
    as_int(perform_planned_call(CallKind::Spawn, "execve", None, real_call))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_spawnp(
    pid: *mut pid_t,
    file: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    args: *const *const c_char,
    env: *const *const c_char,
) -> c_int {
    let result = perform_planned_call(CallKind::Spawn, "posix_spawnp", None, |_| {
        // SAFETY: the system's function has this shape; the rest is the caller's promise, and what
        // is added to the environment stays until the call returns.
        let error = unsafe {
            let child_env = holder_environment(args, env);
            let real_spawn: Option<SpawnFn> = transmute(next_symbol(c"posix_spawnp"));
            let env = child_env.as_ref().map_or(env, Vec::as_ptr);
            real_spawn.map_or(libc::ENOSYS, |real| real(pid, file, actions, attributes, args, env))
        };
        c_long::from(error)
    });
    // SAFETY: the place of this thread's error number. This one call gives the number itself.
    if result < 0 { unsafe { *libc::__errno_location() } } else { as_int(result) }
}

/// Returns the environment of a process holder that loads this library; `None` for any other process.
unsafe fn holder_environment(
    args: *const *const c_char,
    env: *const *const c_char,
) -> Option<Vec<*const c_char>> {
    // SAFETY: lists of strings of C that end in a null, by the caller's promise and by the system's.
    unsafe {
        let first_argument = null_terminated_list(args).into_iter().nth(1)?;
        let is_passed = |entry: &*const c_char| {
            let entry = CStr::from_ptr(*entry).to_bytes();
            PASSED_VARIABLE_PREFIXES.iter().any(|start| entry.starts_with(start))
        };
        let fault_variables = null_terminated_list(environ.cast()).into_iter().filter(is_passed);
        let all = null_terminated_list(env).into_iter().chain(fault_variables).chain([ptr::null()]);
        (CStr::from_ptr(first_argument) == c"warden").then(|| all.collect())
    }
}

unsafe extern "C" {
    static environ: *const *const c_char;
}

unsafe fn null_terminated_list(mut entry: *const *const c_char) -> Vec<*const c_char> {
    let mut entries = Vec::new();
    // SAFETY: the list ends in a null, by the caller's promise.
    unsafe {
        while !entry.is_null() && !(*entry).is_null() {
            entries.push(*entry);
            entry = entry.add(1);
        }
    }
    entries
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pipe2(fds: *mut c_int, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let real_call = |_| unsafe { libc::syscall(libc::SYS_pipe2, fds, flags) };
    as_int(perform_planned_call(CallKind::Spawn, "pipe2", None, real_call))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memfd_create(name: *const c_char, flags: c_uint) -> c_int {
    // SAFETY: the caller's promise.
    let real_call = |_| unsafe { libc::syscall(libc::SYS_memfd_create, name, flags) };
    as_int(perform_planned_call(CallKind::Spawn, "memfd_create", None, real_call))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn socketpair(
    family: c_int,
    kind: c_int,
    protocol: c_int,
    fds: *mut c_int,
) -> c_int {
    let call = libc::SYS_socketpair;
    // SAFETY: the caller's promise.
    let real_call = |_| unsafe { libc::syscall(call, family, kind, protocol, fds) };
    as_int(perform_planned_call(CallKind::Spawn, "socketpair", None, real_call))
}
