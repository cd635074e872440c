//! Capabilities that a confined program of root keeps: for work with files of other users. None of them moves a mount,
//! loads a module, creates a device or opens a file past a mount or a domain.

use std::ffi::c_ulong;

/// Names for bubblewrap and numbers for the kernel, for a program with a mount namespace. There the program cannot name
/// the service's files and processes.
pub(crate) const NAMESPACE_CAPABILITIES: [(&str, u32); 8] = [
    ("CAP_CHOWN", 0),
    ("CAP_DAC_OVERRIDE", 1),
    ("CAP_FOWNER", 3),
    ("CAP_FSETID", 4),
    ("CAP_KILL", 5),
    ("CAP_SETGID", 6),
    ("CAP_SETUID", 7),
    ("CAP_NET_BIND_SERVICE", 10),
];

/// Numbers for a domain whose program changes no file: `CAP_DAC_OVERRIDE` and `CAP_NET_BIND_SERVICE`.
const READ_CAPABILITIES: [u32; 2] = [1, 10];

/// Numbers for a domain whose program changes files: also `CAP_CHOWN`, `CAP_FOWNER` and `CAP_FSETID`, without which
/// unpacking an archive and copying with owners fail for root.
const WRITE_CAPABILITIES: [u32; 5] = [0, 1, 3, 4, 10];

/// Numbers until a program becomes another user, which drops all of them: `CAP_SETGID` and `CAP_SETUID`.
const USER_CHANGE_CAPABILITIES: [u32; 2] = [6, 7];

/// Set of root's capabilities that a program keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RootCapabilities {
    /// All capabilities of the service.
    #[default]
    All,
    /// Capabilities to work with files of other users, and to change their owners and modes.
    ReadWrite,
    /// Capabilities to read files of other users.
    ReadOnly,
}

impl RootCapabilities {
    /// Returns the number of the set in a frame.
    pub(crate) const fn frame_code(self) -> u64 {
        match self {
            Self::All => 0,
            Self::ReadWrite => 1,
            Self::ReadOnly => 2,
        }
    }

    /// Returns the set with this number; a number of a later version yields the smallest set.
    pub(crate) const fn from_frame_code(number: u64) -> Self {
        match number {
            0 => Self::All,
            1 => Self::ReadWrite,
            _ => Self::ReadOnly,
        }
    }

    /// Returns the numbers of the retained capabilities, for a program that becomes another user until then; `None` for
    /// all.
    pub(crate) const fn retained_capabilities(self, changes_user: bool) -> Option<&'static [u32]> {
        match self {
            Self::All => None,
            Self::ReadWrite | Self::ReadOnly if changes_user => Some(&USER_CHANGE_CAPABILITIES),
            Self::ReadWrite => Some(&WRITE_CAPABILITIES),
            Self::ReadOnly => Some(&READ_CAPABILITIES),
        }
    }
}

/// Upper bound of capability numbers.
const MAX_CAPABILITY_NUMBERS: u32 = 64;

/// Version of the structures of `capset` with two words for each set.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct CapabilityData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Drops all capabilities of this process except these permanently: a program that it executes as root does not regain
/// them.
///
/// # Errors
/// Error number of the call that failed.
#[expect(unsafe_code, reason = "runs in the child, between two programs")]
pub(crate) unsafe fn drop_all_except(retained: &[u32]) -> Result<(), i32> {
    for number in (0..MAX_CAPABILITY_NUMBERS).filter(|number| !retained.contains(number)) {
        // SAFETY: plain system calls with numbers as arguments.
        unsafe {
            let argument = c_ulong::from(number);
            // A number that this kernel does not know, or that was dropped already, returns another value.
            if libc::prctl(libc::PR_CAPBSET_READ, argument, 0, 0, 0) == 1 {
                check_call(libc::prctl(libc::PR_CAPBSET_DROP, argument, 0, 0, 0).into())?;
            }
        }
    }
    let retained = retained.iter().fold(0, |set, number| set | 1 << number);
    // SAFETY: as here.
    unsafe { set_capabilities(retained) }
}

/// Changes this process to another user, without supplementary groups and without any capability.
///
/// The functions of the C library would apply that to every thread that shares this memory, which are those of the
/// parent. The raw system calls apply it to this process alone.
///
/// # Errors
/// Error number of the call that failed.
#[expect(unsafe_code, reason = "runs in the child, between two programs")]
pub(crate) unsafe fn become_user(uid: u32, gid: u32) -> Result<(), i32> {
    // SAFETY: plain system calls with numbers as arguments; an empty list of groups has no address.
    unsafe {
        let no_groups = std::ptr::null::<u32>();
        check_call(libc::syscall(libc::SYS_setgroups, 0_usize, no_groups))?;
        check_call(libc::syscall(libc::SYS_setresgid, gid, gid, gid))?;
        check_call(libc::syscall(libc::SYS_setresuid, uid, uid, uid))?;
        set_capabilities(0)
    }
}

/// Clears the ambient set, so that a service that may change users passes that capability to no program.
#[expect(unsafe_code, reason = "runs in the child, between two programs")]
pub(crate) unsafe fn clear_ambient() {
    // SAFETY: a plain system call with numbers as arguments. It fails only where there is no such set.
    unsafe {
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    }
}

#[expect(unsafe_code, reason = "runs in the child, between two programs")]
unsafe fn set_capabilities(mask: u32) -> Result<(), i32> {
    let header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    let low = CapabilityData { effective: mask, permitted: mask, inheritable: 0 };
    let data = [low, CapabilityData { effective: 0, permitted: 0, inheritable: 0 }];
    // SAFETY: both structures live, and are as the kernel expects them.
    unsafe { check_call(libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr())) }
}

/// Returns the error number of a call that failed.
#[expect(unsafe_code, reason = "runs in the child, between two programs")]
pub(crate) unsafe fn check_call(returned: libc::c_long) -> Result<(), i32> {
    if returned >= 0 {
        return Ok(());
    }
    // SAFETY: the child shares this place with the process holder, which sleeps.
    Err(unsafe { *libc::__errno_location() })
}
