//! Child process that shares the process holder's memory until its `execve`.
//!
//! `posix_spawn` sets no limits and no ruleset, and a fork copies page tables. So `clone_child` creates the child as
//! `vfork` would, and the child itself makes the remaining preparations with nothing but system calls. The process
//! holder sleeps meanwhile.

use std::ffi::{CString, NulError, c_char, c_int, c_uint, c_void};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use nix::errno::Errno;
use nix::unistd::{Pid, geteuid};

use super::syscall_filter;
use crate::confinement::network_access::NetworkAccess;
use crate::confinement::root_capabilities::{self, check_call};
use crate::protocol::launch_frame::LaunchSpec;

/// First descriptor number for held descriptors. Lower ones belong to the present frame; the child does not copy the
/// higher ones.
pub(super) const FIRST_HELD_FD: c_uint = 64;

/// Bytes of the child's stack; the child calls nothing that needs more.
const CHILD_STACK_BYTES: usize = 64 * 1024;

const CLOSE_RANGE_UNSHARE: c_uint = 1 << 1;
const CLOSE_RANGE_CLOEXEC: c_uint = 1 << 2;

/// Stack of the child, which all children use one after the other.
#[derive(Debug)]
pub(super) struct ChildStack(Vec<u128>);

impl ChildStack {
    /// Returns a stack for all later children.
    pub(super) fn new() -> Self {
        Self(vec![0; CHILD_STACK_BYTES / size_of::<u128>()])
    }

    /// Returns the end of the stack, from which it grows down.
    #[expect(unsafe_code, reason = "the end of a vector is not one of its places")]
    fn top(&mut self) -> *mut c_void {
        // SAFETY: one past the last place of the same vector.
        unsafe { self.0.as_mut_ptr().add(self.0.len()).cast() }
    }
}

/// Soft and hard limit of one resource.
pub(super) type Rlimit = (libc::__rlimit_resource_t, u64, u64);

/// Confinement of a program from its start.
#[derive(Debug)]
pub(super) struct StartConfinement {
    /// Landlock ruleset: the files and the network that it may use.
    pub(super) ruleset: Option<OwnedFd>,
    /// Network that the program with this ruleset may use.
    pub(super) network: NetworkAccess,
    /// Entry file of its control group.
    pub(super) procs_file: Option<OwnedFd>,
}

/// Spec with the strings that the system calls expect.
struct PreparedSpec {
    program: CString,
    args: Vec<CString>,
    env: Vec<CString>,
    working_dir: CString,
}

impl PreparedSpec {
    fn from_spec(spec: &LaunchSpec) -> Result<Self, NulError> {
        let to_c_strings = |list: &[Vec<u8>]| -> Result<Vec<CString>, NulError> {
            list.iter().map(|text| CString::new(text.clone())).collect()
        };
        Ok(Self {
            program: CString::new(spec.program.clone())?,
            args: to_c_strings(&spec.args)?,
            env: to_c_strings(&spec.env)?,
            working_dir: CString::new(spec.working_dir.clone())?,
        })
    }
}

fn null_terminated_pointers(list: &[CString]) -> Vec<*const c_char> {
    list.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

/// Data that the child reads, and the error number that it writes.
struct ChildSetup {
    program: *const c_char,
    args: *const *const c_char,
    env: *const *const c_char,
    working_dir: *const c_char,
    streams: [c_int; 3],
    ruleset: Option<c_int>,
    network: NetworkAccess,
    procs_file: Option<c_int>,
    limits: *const [Rlimit],
    /// Capabilities that remain, if some are dropped.
    retained_capabilities: Option<&'static [u32]>,
    user: Option<(u32, u32)>,
    errno: c_int,
}

/// Starts a program in a session of its own, with default signals, and with these descriptors only. Returns after the
/// `execve`.
///
/// # Errors
/// The system's error of any step.
pub(super) fn start(
    spec: &LaunchSpec,
    streams: [&OwnedFd; 3],
    confinement: &StartConfinement,
    limits: &[Rlimit],
    stack: &mut ChildStack,
) -> Result<Pid, Errno> {
    let prepared = PreparedSpec::from_spec(spec).map_err(|_zero| Errno::EINVAL)?;
    let (args, env) =
        (null_terminated_pointers(&prepared.args), null_terminated_pointers(&prepared.env));
    let mut setup = ChildSetup {
        program: prepared.program.as_ptr(),
        args: args.as_ptr(),
        env: env.as_ptr(),
        working_dir: prepared.working_dir.as_ptr(),
        streams: streams.map(AsRawFd::as_raw_fd),
        ruleset: confinement.ruleset.as_ref().map(AsRawFd::as_raw_fd),
        network: confinement.network,
        procs_file: confinement.procs_file.as_ref().map(AsRawFd::as_raw_fd),
        limits: ptr::from_ref(limits),
        // Only root has capabilities that can be dropped.
        retained_capabilities: spec
            .root_capabilities
            .retained_capabilities(spec.user.is_some())
            .filter(|_| geteuid().is_root()),
        user: spec.user,
        errno: 0,
    };
    let pid = clone_child(&mut setup, stack)?;
    if setup.errno == 0 { Ok(pid) } else { Err(Errno::from_raw(setup.errno)) }
}

#[expect(unsafe_code, reason = "no safe wrapper shares memory with a child")]
fn clone_child(setup: &mut ChildSetup, stack: &mut ChildStack) -> Result<Pid, Errno> {
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::SIGCHLD;
    // SAFETY: CLONE_VFORK keeps this thread, the only one, asleep until the child has called
    // `execve` or `_exit`; so the stack, `setup` and all it points to outlive the child's use of
    // them, and nobody else uses them meanwhile. The stack grows down from an aligned end.
    let pid = unsafe {
        libc::clone(child_main, stack.top(), flags, ptr::from_mut(setup).cast::<c_void>())
    };
    Ok(Pid::from_raw(Errno::result(pid)?))
}

#[expect(unsafe_code, reason = "runs in the child, between two programs")]
extern "C" fn child_main(setup: *mut c_void) -> c_int {
    // SAFETY: `clone_child` gave a `ChildSetup`, which nobody else uses while this runs. Everything that is
    // called here is a system call: nothing allocates, locks or unwinds.
    unsafe {
        let setup = &mut *setup.cast::<ChildSetup>();
        setup.errno = prepare_child(setup).err().unwrap_or_else(|| {
            libc::execve(setup.program, setup.args, setup.env);
            *libc::__errno_location()
        });
        libc::_exit(127)
    }
}

/// Makes all preparations between the clone and the `execve`.
#[expect(unsafe_code, reason = "runs in the child, between two programs")]
unsafe fn prepare_child(setup: &ChildSetup) -> Result<(), c_int> {
    // SAFETY: as in `child_main`; every pointer is one of `setup`.
    unsafe {
        // The unshare comes first: until then the descriptors are those of the process holder itself.
        check_call(libc::syscall(
            libc::SYS_close_range,
            FIRST_HELD_FD,
            c_uint::MAX,
            CLOSE_RANGE_UNSHARE,
        ))?;
        check_call(libc::setsid().into())?;
        if let Some(group) = setup.procs_file {
            // The number zero stands for the writing process. Entering comes early, so that all usage counts.
            check_call(libc::write(group, c"0".as_ptr().cast(), 1).try_into().unwrap_or(-1))?;
        }
        for (resource, soft, hard) in &*setup.limits {
            let limit = libc::rlimit { rlim_cur: *soft, rlim_max: *hard };
            check_call(libc::setrlimit(*resource, &raw const limit).into())?;
        }
        for (target_fd, stream) in (0..).zip(setup.streams) {
            check_call(libc::dup2(stream, target_fd).into())?;
        }
        root_capabilities::clear_ambient();
        if let Some(retained) = setup.retained_capabilities {
            root_capabilities::drop_all_except(retained)?;
        }
        if let Some((uid, gid)) = setup.user {
            root_capabilities::become_user(uid, gid)?;
        }
        // After the change of user: the program does not start in a folder that this user may not enter.
        check_call(libc::chdir(setup.working_dir).into())?;
        if let Some(ruleset) = setup.ruleset {
            check_call(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
            check_call(libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0))?;
            // A Landlock domain does not restrict `prlimit`, and of the network only ordinary TCP.
            syscall_filter::refuse_foreign_prlimit()?;
            syscall_filter::restrict_network(setup.network)?;
        }
        check_call(libc::syscall(libc::SYS_close_range, 3, c_uint::MAX, CLOSE_RANGE_CLOEXEC))?;
        // The only signal that the holder ignores; `execve` would pass that to the program.
        let mut default_action = std::mem::MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        default_action.sa_sigaction = libc::SIG_DFL;
        check_call(
            libc::sigaction(libc::SIGXFSZ, &raw const default_action, ptr::null_mut()).into(),
        )?;
        let mut empty_mask = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        // The holder blocks signals for its `signalfd`; `execve` would pass that mask to the program.
        libc::sigemptyset(empty_mask.as_mut_ptr());
        check_call(
            libc::sigprocmask(libc::SIG_SETMASK, empty_mask.as_ptr(), ptr::null_mut()).into(),
        )
    }
}
