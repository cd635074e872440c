//! Landlock domains: the files and the network that a program may use, as a ruleset of paths.
//!
//! Landlock has allow rules only, so it refuses everything that no rule names. The service builds the
//! ruleset, because opening paths may block; the program's own process applies it before `execve`. All
//! processes that the program starts inherit the domain, and none can leave it. A domain alone also prevents
//! its processes from tracing processes outside of it and from reading their environment.
//!
//! Landlock does not restrict modes, owners, times and attributes of files, listing of folders (the ruleset
//! does not handle that right, see [`FileAccess::readable_paths`]), and sockets in the file system. Of the network it
//! restricts ordinary TCP only; a seccomp filter of the program refuses the other protocols.

mod allow_list;

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use nix::errno::Errno;

use super::bubblewrap::ViewError;
use super::network_access::NetworkAccess;

pub use self::allow_list::{AllowList, ReadablePaths};

/// Landlock domain of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandlockDomain {
    /// Files that the program may read and change; without it, all files.
    pub files: Option<FileAccess>,
    /// Network that the program may use.
    pub network: NetworkAccess,
}

/// Ruleset of a [`LandlockDomain`] as a descriptor, with the network that a seccomp filter enforces beside it.
#[derive(Debug, Clone)]
pub struct Ruleset {
    pub(crate) fd: Arc<OwnedFd>,
    pub(crate) network: NetworkAccess,
}

/// Files that a program may read and change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileAccess {
    /// Files and folders whose content the program may read and execute. Folders may be listed everywhere,
    /// so that a program can list a folder above a hidden one.
    pub readable_paths: Arc<ReadablePaths>,
    /// Files and folders that the program may change, and read too, as paths without links. Harmless devices are always
    /// among them. A path that does not exist is skipped.
    pub writable_paths: Vec<PathBuf>,
    /// Folders that the service has created for the program, which it may change too.
    pub private_folders: Vec<PathBuf>,
    /// Folder of shared memory in which the program may create, change and remove files, as a path without links. The
    /// rule applies to everything below it.
    pub shared_memory: Option<PathBuf>,
}

/// Devices without stored data, and the terminals that a program creates for others.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// Access rights as in `linux/landlock.h`; the libc crate defines none of them.
mod right {
    pub(super) const EXECUTE: u64 = 1;
    pub(super) const WRITE_FILE: u64 = 1 << 1;
    pub(super) const READ_FILE: u64 = 1 << 2;
    pub(super) const REMOVE_FILE: u64 = 1 << 5;
    pub(super) const MAKE_CHAR: u64 = 1 << 6;
    pub(super) const MAKE_REGULAR: u64 = 1 << 8;
    pub(super) const MAKE_BLOCK: u64 = 1 << 11;
    /// The nine rights from removing a folder to creating a symbolic link.
    pub(super) const REMOVE_AND_MAKE: u64 = 0b1_1111_1111 << 4;
    /// Renaming or linking into another folder: since version 2. Before, every domain refuses it.
    pub(super) const REFER: u64 = 1 << 13;
    /// Truncating a file: since version 3.
    pub(super) const TRUNCATE: u64 = 1 << 14;
    /// Binding and connecting TCP: since version 4.
    pub(super) const TCP: u64 = 0b11;
    /// Abstract Unix sockets and signals stay inside the domain: since version 6.
    pub(super) const SCOPES: u64 = 0b11;

    pub(super) const READ: u64 = EXECUTE | READ_FILE;
    /// Rights that apply to a file; a rule for a file may contain no other.
    pub(super) const FILE_RIGHTS: u64 = READ | WRITE_FILE | TRUNCATE;
    /// Rights that no rule grants: with its own device node, a program of root could read the whole disk.
    pub(super) const NEVER_GRANTED_RIGHTS: u64 = MAKE_CHAR | MAKE_BLOCK;
}

const CREATE_RULESET_VERSION: u32 = 1;
const RULE_PATH_BENEATH: u32 = 1;

/// Attributes of a ruleset. The kernel accepts a longer structure than it knows if the rest is zero.
#[repr(C)]
#[derive(Default)]
struct RulesetAttributes {
    handled_file_rights: u64,
    handled_network_rights: u64,
    scopes: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    rights: u64,
    parent: RawFd,
}

/// Returns the Landlock version of the kernel, or `None` without Landlock.
#[must_use]
#[expect(unsafe_code, reason = "no safe wrapper knows Landlock")]
pub fn abi_version() -> Option<u32> {
    let no_attributes = std::ptr::null::<RulesetAttributes>();
    let syscall_number = libc::SYS_landlock_create_ruleset;
    // SAFETY: with this flag no attributes are read, and a number is returned.
    let version =
        unsafe { libc::syscall(syscall_number, no_attributes, 0_usize, CREATE_RULESET_VERSION) };
    u32::try_from(version).ok().filter(|version| *version > 0)
}

impl LandlockDomain {
    /// Returns the ruleset of this domain, as far as the kernel knows its rights.
    ///
    /// # Errors
    /// Fails if the kernel has no Landlock, a path that exists cannot be opened, or a writable path leads through a
    /// link.
    pub fn build_ruleset(&self) -> Result<Ruleset, ViewError> {
        let fd = Arc::new(self.build_ruleset_fd()?);
        Ok(Ruleset { fd, network: self.network })
    }

    fn build_ruleset_fd(&self) -> Result<OwnedFd, ViewError> {
        let version = abi_version().ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
        // An empty namespace leads nowhere, and its own loopback stays usable.
        let network_rights =
            if self.network != NetworkAccess::Refused || version < 4 { 0 } else { right::TCP };
        let scopes = if version < 6 { 0 } else { right::SCOPES };
        let Some(access) = &self.files else {
            return Ok(create_ruleset_allowing_files(&RulesetAttributes {
                handled_file_rights: 0,
                handled_network_rights: network_rights,
                scopes,
            })?);
        };
        let change_rights = change_rights(version);
        let ruleset = create_empty_ruleset(&RulesetAttributes {
            handled_file_rights: right::READ | change_rights,
            handled_network_rights: network_rights,
            scopes,
        })?;
        for device in open_devices()? {
            add_rule(&ruleset, device, right::READ_FILE | right::WRITE_FILE)?;
        }
        if let Some(path) = &access.shared_memory
            && let Some(folder) = AllowedPath::open(path)?
            && folder.path()? == *path
        {
            add_rule(&ruleset, &folder, shared_memory_rights(version))?;
        }
        for allowed in access.readable_paths.open_entries() {
            add_rule(&ruleset, &allowed, right::READ)?;
        }
        for path in access.writable_paths.iter().chain(&access.private_folders) {
            let Some(allowed) = AllowedPath::open(path)? else { continue };
            // The rule applies to the open file, so no process can replace it after this comparison.
            if access.writable_paths.contains(path) && allowed.path()? != *path {
                return Err(ViewError::ReplacedByLink { path: path.clone() });
            }
            add_rule(
                &ruleset,
                &allowed,
                right::READ | change_rights & !right::NEVER_GRANTED_RIGHTS,
            )?;
        }
        Ok(ruleset)
    }
}

/// Returns a ruleset that restricts no file. A domain that handles any right of files also refuses mounts, on which the
/// sandboxes of some agents depend; before version 6 the kernel accepts no ruleset without one.
fn create_ruleset_allowing_files(attributes: &RulesetAttributes) -> io::Result<OwnedFd> {
    if attributes.handled_network_rights | attributes.scopes != 0 {
        return create_empty_ruleset(attributes);
    }
    let ruleset = create_empty_ruleset(&RulesetAttributes {
        handled_file_rights: right::MAKE_BLOCK,
        ..Default::default()
    })?;
    if let Some(root) = AllowedPath::open(Path::new("/"))? {
        add_rule(&ruleset, &root, right::MAKE_BLOCK)?;
    }
    Ok(ruleset)
}

/// Open path for a rule.
struct AllowedPath {
    file: File,
    is_folder: bool,
}

impl AllowedPath {
    /// Opens a path, following links; `None` if nothing exists there.
    fn open(path: &Path) -> io::Result<Option<Self>> {
        match Self::open_with_flags(path, libc::O_PATH) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// Returns the path of the open file, without links.
    fn path(&self) -> io::Result<PathBuf> {
        std::fs::read_link(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    fn open_with_flags(path: &Path, flags: libc::c_int) -> io::Result<Self> {
        let file = File::options().read(true).custom_flags(flags).open(path)?;
        let is_folder = file.metadata()?.is_dir();
        Ok(Self { file, is_folder })
    }
}

/// Returns the devices, opened once: they are the same for all domains, and no agent can replace them.
fn open_devices() -> io::Result<&'static [AllowedPath]> {
    static OPEN_DEVICES: OnceLock<Vec<AllowedPath>> = OnceLock::new();
    if let Some(opened) = OPEN_DEVICES.get() {
        return Ok(opened);
    }
    let opened_devices = DEVICES.iter().map(|device| AllowedPath::open(Path::new(device)));
    let opened_devices = opened_devices.filter_map(Result::transpose).collect::<io::Result<_>>()?;
    Ok(OPEN_DEVICES.get_or_init(|| opened_devices))
}

/// Returns the rights to create, use and remove shared memory. They permit no folder, symbolic link, socket
/// or pipe there.
fn shared_memory_rights(version: u32) -> u64 {
    let truncate = if version >= 3 { right::TRUNCATE } else { 0 };
    right::READ_FILE | right::WRITE_FILE | right::MAKE_REGULAR | right::REMOVE_FILE | truncate
}

/// Returns every right to change a file or a folder that a version knows.
fn change_rights(version: u32) -> u64 {
    let since = |first: u32, right: u64| if version >= first { right } else { 0 };
    right::WRITE_FILE | right::REMOVE_AND_MAKE | since(2, right::REFER) | since(3, right::TRUNCATE)
}

#[expect(unsafe_code, reason = "no safe wrapper knows Landlock")]
fn create_empty_ruleset(attributes: &RulesetAttributes) -> io::Result<OwnedFd> {
    let (syscall_number, size) =
        (libc::SYS_landlock_create_ruleset, size_of::<RulesetAttributes>());
    // SAFETY: the attributes live, and have that size; the descriptor is new and ours alone.
    unsafe {
        let fd = libc::syscall(syscall_number, std::ptr::from_ref(attributes), size, 0_u32);
        let fd = RawFd::try_from(Errno::result(fd)?).map_err(io::Error::other)?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Grants these rights to a path and all below it.
#[expect(unsafe_code, reason = "no safe wrapper knows Landlock")]
fn add_rule(ruleset: &OwnedFd, path: &AllowedPath, rights: u64) -> io::Result<()> {
    let rights = if path.is_folder { rights } else { rights & right::FILE_RIGHTS };
    let attributes = PathBeneath { rights, parent: path.file.as_raw_fd() };
    let (syscall_number, rule) = (libc::SYS_landlock_add_rule, std::ptr::from_ref(&attributes));
    // SAFETY: both descriptors and the rule outlive the call.
    let added = unsafe {
        libc::syscall(syscall_number, ruleset.as_raw_fd(), RULE_PATH_BENEATH, rule, 0_u32)
    };
    Errno::result(added)?;
    Ok(())
}
