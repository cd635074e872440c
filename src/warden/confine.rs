//! What a program may still change and reach: a Landlock ruleset, made of paths.
//!
//! Landlock can only permit, so whatever is not named is refused. The ruleset is made here, while
//! files may be waited for, and put on by the program itself before it begins; all that it starts
//! has it too, and nobody can take it off. What it does not know is left as it is: modes, owners,
//! times and attributes of files, and UDP.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nix::errno::Errno;

/// What a program may do. It may read and execute everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    /// Files, and folders with all in them, that it may change; devices that hold nothing are
    /// among them always. What is not there is passed over.
    pub writable: Vec<PathBuf>,
    /// Whether it may use TCP.
    pub network: bool,
}

/// Devices that hold nothing, and the terminals that a program makes for others.
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

/// Rights as `linux/landlock.h` numbers them; the system's library names none of them.
mod right {
    pub(super) const WRITE_FILE: u64 = 1 << 1;
    /// From removing a folder to making a symbolic link, which are nine.
    pub(super) const REMOVE_AND_MAKE: u64 = 0b1_1111_1111 << 4;
    /// To move or link into another folder: since version 2. Before, nobody may.
    pub(super) const REFER: u64 = 1 << 13;
    /// Since version 3.
    pub(super) const TRUNCATE: u64 = 1 << 14;
    /// To bind and to connect TCP: since version 4.
    pub(super) const TCP: u64 = 0b11;
}

const CREATE_RULESET_VERSION: u32 = 1;
const RULE_PATH_BENEATH: u32 = 1;

#[repr(C)]
struct RulesetAttributes {
    files: u64,
    network: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    rights: u64,
    parent: RawFd,
}

/// The version of Landlock that the kernel has; `None` is without.
#[must_use]
#[expect(unsafe_code, reason = "no safe wrapper knows Landlock")]
pub fn version() -> Option<u32> {
    let nothing = std::ptr::null::<RulesetAttributes>();
    let call = libc::SYS_landlock_create_ruleset;
    // SAFETY: with this flag no attributes are read, and a number is returned.
    let version = unsafe { libc::syscall(call, nothing, 0_usize, CREATE_RULESET_VERSION) };
    u32::try_from(version).ok().filter(|version| *version > 0)
}

impl Confinement {
    /// The ruleset, as far as the kernel knows its rights.
    ///
    /// # Errors
    /// When there is no Landlock, or a path cannot be opened although it is there.
    pub fn ruleset(&self) -> io::Result<OwnedFd> {
        let version = version().ok_or(io::ErrorKind::Unsupported)?;
        let files = changes(version);
        let network = if self.network || version < 4 { 0 } else { right::TCP };
        let ruleset = create(&RulesetAttributes { files, network })?;
        for device in devices()? {
            permit(&ruleset, device, files & right::WRITE_FILE)?;
        }
        for path in &self.writable {
            if let Some(place) = Place::open(path)? {
                permit(&ruleset, &place, files)?;
            }
        }
        Ok(ruleset)
    }
}

/// What is at a path, to be named in a rule.
struct Place {
    file: File,
    is_folder: bool,
}

impl Place {
    /// Opens it, if anything is there.
    fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = match File::options().read(true).custom_flags(libc::O_PATH).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let is_folder = file.metadata()?.is_dir();
        Ok(Some(Self { file, is_folder }))
    }
}

/// The devices, opened when they are needed first: they are the same for all, and stay where they are.
fn devices() -> io::Result<&'static [Place]> {
    static OPENED: OnceLock<Vec<Place>> = OnceLock::new();
    if let Some(opened) = OPENED.get() {
        return Ok(opened);
    }
    let places = DEVICES.iter().map(|device| Place::open(Path::new(device)));
    let places = places.filter_map(Result::transpose).collect::<io::Result<_>>()?;
    Ok(OPENED.get_or_init(|| places))
}

/// Every way to change a file or a folder that a version knows.
fn changes(version: u32) -> u64 {
    let since = |first: u32, right: u64| if version >= first { right } else { 0 };
    right::WRITE_FILE | right::REMOVE_AND_MAKE | since(2, right::REFER) | since(3, right::TRUNCATE)
}

#[expect(unsafe_code, reason = "no safe wrapper knows Landlock")]
fn create(attributes: &RulesetAttributes) -> io::Result<OwnedFd> {
    let (call, size) = (libc::SYS_landlock_create_ruleset, size_of::<RulesetAttributes>());
    // SAFETY: the attributes live, and have that size; the descriptor is new and ours alone.
    unsafe {
        let made = libc::syscall(call, std::ptr::from_ref(attributes), size, 0_u32);
        let made = RawFd::try_from(Errno::result(made)?).map_err(io::Error::other)?;
        Ok(OwnedFd::from_raw_fd(made))
    }
}

/// Permits these changes to what is at a place.
#[expect(unsafe_code, reason = "no safe wrapper knows Landlock")]
fn permit(ruleset: &OwnedFd, place: &Place, rights: u64) -> io::Result<()> {
    let of_a_file = right::WRITE_FILE | right::TRUNCATE;
    let rights = if place.is_folder { rights } else { rights & of_a_file };
    let beneath = PathBeneath { rights, parent: place.file.as_raw_fd() };
    let (call, rule) = (libc::SYS_landlock_add_rule, std::ptr::from_ref(&beneath));
    // SAFETY: both descriptors and the rule outlive the call.
    let added = unsafe { libc::syscall(call, ruleset.as_raw_fd(), RULE_PATH_BENEATH, rule, 0_u32) };
    Errno::result(added)?;
    Ok(())
}
