//! The child that shares the warden's memory until it becomes its program.
//!
//! `posix_spawn` sets no limits and no ruleset, and a fork copies page tables. So the child is
//! made by `clone` as `vfork` makes it, and does by itself, with nothing but system calls, what
//! must be done in between. The warden sleeps meanwhile.

use std::ffi::{CString, NulError, c_char, c_int, c_uint, c_void};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use nix::errno::Errno;
use nix::unistd::Pid;

use super::super::frame::Spec;

/// Descriptors below this one belong to the frame that is being performed; the child does not
/// copy what is above.
pub(super) const FIRST_HELD: c_uint = 64;

/// Bytes of the child's stack; it calls nothing that needs more.
const STACK: usize = 64 * 1024;

const CLOSE_RANGE_UNSHARE: c_uint = 1 << 1;
const CLOSE_RANGE_CLOEXEC: c_uint = 1 << 2;

/// What the child calls its functions on, used by one after the other.
#[derive(Debug)]
pub(super) struct Stack(Vec<u128>);

impl Stack {
    /// One for all that are to be born.
    pub(super) fn new() -> Self {
        Self(vec![0; STACK / size_of::<u128>()])
    }

    /// Its end, from which it grows down.
    #[expect(unsafe_code, reason = "the end of a vector is not one of its places")]
    fn top(&mut self) -> *mut c_void {
        // SAFETY: one past the last place of the same vector.
        unsafe { self.0.as_mut_ptr().add(self.0.len()).cast() }
    }
}

/// Limits of one resource, soft and hard.
pub(super) type Limit = (libc::__rlimit_resource_t, u64, u64);

/// What holds a program from its beginning, as descriptors.
#[derive(Debug)]
pub(super) struct Bounds {
    /// What it may change and reach.
    pub(super) ruleset: Option<OwnedFd>,
    /// Where it enters its control group.
    pub(super) group: Option<OwnedFd>,
}

/// A spec in the form in which the system takes it.
struct Form {
    program: CString,
    args: Vec<CString>,
    env: Vec<CString>,
    working_dir: CString,
}

impl Form {
    fn of(spec: &Spec) -> Result<Self, NulError> {
        let list = |list: &[Vec<u8>]| -> Result<Vec<CString>, NulError> {
            list.iter().map(|text| CString::new(text.clone())).collect()
        };
        Ok(Self {
            program: CString::new(spec.program.clone())?,
            args: list(&spec.args)?,
            env: list(&spec.env)?,
            working_dir: CString::new(spec.working_dir.clone())?,
        })
    }
}

fn pointers(list: &[CString]) -> Vec<*const c_char> {
    list.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

/// What the child reads, and the one thing that it writes.
struct Birth {
    program: *const c_char,
    args: *const *const c_char,
    env: *const *const c_char,
    working_dir: *const c_char,
    streams: [c_int; 3],
    ruleset: Option<c_int>,
    group: Option<c_int>,
    limits: *const [Limit],
    errno: c_int,
}

/// Starts a program in a session of its own, with default signals, and with these descriptors
/// and no others. Returns when it is loaded.
///
/// # Errors
/// What the system said, of whichever step.
pub(super) fn start(
    spec: &Spec,
    streams: [&OwnedFd; 3],
    bounds: &Bounds,
    limits: &[Limit],
    stack: &mut Stack,
) -> Result<Pid, Errno> {
    let form = Form::of(spec).map_err(|_zero| Errno::EINVAL)?;
    let (args, env) = (pointers(&form.args), pointers(&form.env));
    let mut birth = Birth {
        program: form.program.as_ptr(),
        args: args.as_ptr(),
        env: env.as_ptr(),
        working_dir: form.working_dir.as_ptr(),
        streams: streams.map(AsRawFd::as_raw_fd),
        ruleset: bounds.ruleset.as_ref().map(AsRawFd::as_raw_fd),
        group: bounds.group.as_ref().map(AsRawFd::as_raw_fd),
        limits: ptr::from_ref(limits),
        errno: 0,
    };
    let pid = clone(&mut birth, stack)?;
    if birth.errno == 0 { Ok(pid) } else { Err(Errno::from_raw(birth.errno)) }
}

#[expect(unsafe_code, reason = "no safe wrapper shares memory with a child")]
fn clone(birth: &mut Birth, stack: &mut Stack) -> Result<Pid, Errno> {
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::SIGCHLD;
    // SAFETY: CLONE_VFORK keeps this thread, the only one, asleep until the child has called
    // `execve` or `_exit`; so the stack, `birth` and all it points to outlive the child's use of
    // them, and nobody else uses them meanwhile. The stack grows down from an aligned end.
    let pid =
        unsafe { libc::clone(born, stack.top(), flags, ptr::from_mut(birth).cast::<c_void>()) };
    Ok(Pid::from_raw(Errno::result(pid)?))
}

#[expect(unsafe_code, reason = "runs in the child, between two programs")]
extern "C" fn born(birth: *mut c_void) -> c_int {
    // SAFETY: `clone` gave a `Birth`, which nobody else uses while this runs. Everything that is
    // called here is a system call: nothing allocates, locks or unwinds.
    unsafe {
        let birth = &mut *birth.cast::<Birth>();
        birth.errno = prepare(birth).err().unwrap_or_else(|| {
            libc::execve(birth.program, birth.args, birth.env);
            *libc::__errno_location()
        });
        libc::_exit(127)
    }
}

/// All that stands between the clone and the program.
#[expect(unsafe_code, reason = "runs in the child, between two programs")]
unsafe fn prepare(birth: &Birth) -> Result<(), c_int> {
    // SAFETY: as in `born`; every pointer is one of `birth`.
    unsafe {
        // First of all: until here the descriptors are those of the warden itself.
        done(libc::syscall(libc::SYS_close_range, FIRST_HELD, c_uint::MAX, CLOSE_RANGE_UNSHARE))?;
        done(libc::setsid().into())?;
        if let Some(group) = birth.group {
            // A zero is whoever writes it. Before everything else, so that all of it counts.
            done(libc::write(group, c"0".as_ptr().cast(), 1).try_into().unwrap_or(-1))?;
        }
        for (resource, soft, hard) in &*birth.limits {
            let limit = libc::rlimit { rlim_cur: *soft, rlim_max: *hard };
            done(libc::setrlimit(*resource, &raw const limit).into())?;
        }
        for (place, stream) in (0..).zip(birth.streams) {
            done(libc::dup2(stream, place).into())?;
        }
        done(libc::chdir(birth.working_dir).into())?;
        if let Some(ruleset) = birth.ruleset {
            done(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
            done(libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0))?;
        }
        done(libc::syscall(libc::SYS_close_range, 3, c_uint::MAX, CLOSE_RANGE_CLOEXEC))?;
        let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        done(libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut()).into())
    }
}

/// The error number of a call that failed.
#[expect(unsafe_code, reason = "runs in the child, between two programs")]
unsafe fn done(returned: libc::c_long) -> Result<(), c_int> {
    if returned >= 0 {
        return Ok(());
    }
    // SAFETY: the child shares this place with the warden, which sleeps.
    Err(unsafe { *libc::__errno_location() })
}
