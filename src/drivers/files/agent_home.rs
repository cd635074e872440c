//! Homes of agents: folders of mode 0700, with files of mode 0600 that are written once.
//!
//! Programs of the agent may run while the service, which may be root, works in a home. So the service uses
//! descriptors of the folders, and follows no link in them.

use std::ffi::{CStr, CString};
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Component, Path};

use algonius_actors::model::program::UnixUser;
use algonius_actors::model::program::runtime_settings::AgentHome;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, fstat, mkdirat};
use nix::unistd::{Gid, Uid, fchown, fchownat, geteuid};
use uuid::Uuid;

/// Greatest depth at which the owner of folders changes. An agent could create deeper ones to exhaust the stack.
const MAX_FOLDER_DEPTH: usize = 200;

/// Creates a home if it does not exist, and writes the missing files. A file that the program has changed stays
/// unchanged. Another user of the agent becomes the owner of the home and all its files.
///
/// # Errors
/// Fails if a folder or file cannot be created, or if another program has put a link in the place of one.
pub(crate) fn create_or_update(home: &AgentHome, user: Option<UnixUser>) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(&home.path)?;
    let folder = open(&home.path, folder_flags(), Mode::empty())?;
    fchmod(&folder, Mode::S_IRWXU)?;
    home.initial_files
        .iter()
        .try_for_each(|(name, text)| write_file_if_missing(&folder, Path::new(name), text, user))?;
    let Some(user) = user else { return Ok(()) };
    let former_uid = fstat(&folder)?.st_uid;
    // Only if the user differs from the earlier one: a home may contain many files.
    if former_uid == user.uid {
        return Ok(());
    }
    if let Some(homes) = home.path.parent() {
        // The agent's user may pass through, but not list.
        fs::set_permissions(homes, Permissions::from_mode(0o711))?;
    }
    change_owner_of_content(&folder, former_uid, user, MAX_FOLDER_DEPTH)?;
    change_owner(&folder, Some(user))
}

/// Creates a home again whose folder is missing, as a whole or not at all. Several executions may do so at the same
/// time. The folder of the service above the homes must exist.
///
/// # Errors
/// Same as [`create_or_update`].
pub(crate) fn restore(home: &AgentHome, user: Option<UnixUser>) -> io::Result<()> {
    let homes = home.path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    match DirBuilder::new().mode(0o700).create(homes) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let path = homes.join(format!(".new-{}", Uuid::new_v4()));
    let new_home = AgentHome { path: path.clone(), initial_files: home.initial_files.clone() };
    let created = create_or_update(&new_home, user).and_then(|()| fs::rename(&path, &home.path));
    if let Err(error) = created {
        _ = fs::remove_dir_all(&path); // Its own error explains nothing.
        // Another execution was faster.
        return if home.path.is_dir() { Ok(()) } else { Err(error) };
    }
    Ok(())
}

fn folder_flags() -> OFlag {
    OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC
}

fn change_owner(file: &impl AsFd, user: Option<UnixUser>) -> io::Result<()> {
    let Some(UnixUser { uid, gid }) = user else { return Ok(()) };
    Ok(fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?)
}

/// Changes the owner of everything in a folder that belonged to the former user of the home. Links themselves change
/// their owner, and are never followed.
fn change_owner_of_content(
    folder: &OwnedFd,
    former_uid: u32,
    user: UnixUser,
    depth: usize,
) -> io::Result<()> {
    if depth == 0 {
        return Err(Errno::ELOOP.into());
    }
    for name in entry_names(folder)? {
        // One descriptor per depth stays open, so that no home exhausts the descriptors of the service.
        if let Some(inner_folder) = change_owner_of_entry(folder, &name, former_uid, user)? {
            change_owner_of_content(&inner_folder, former_uid, user, depth - 1)?;
        }
    }
    Ok(())
}

fn entry_names(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut entries = Dir::from_fd(openat(folder, c".", folder_flags(), Mode::empty())?)?;
    let names = entries.iter().map(|entry| Ok(entry?.file_name().to_owned()));
    names.filter(|name| !matches!(name.as_deref().map(CStr::to_bytes), Ok(b"." | b".."))).collect()
}

/// Changes the owner of an entry; returns its descriptor if it is a folder.
fn change_owner_of_entry(
    folder: &OwnedFd,
    name: &CStr,
    former_uid: u32,
    user: UnixUser,
) -> io::Result<Option<OwnedFd>> {
    // The descriptor identifies the entry, even if another one replaces it meanwhile.
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let entry = match openat(folder, name, flags, Mode::empty()) {
        Err(Errno::ENOENT) => return Ok(None),
        opened => opened?,
    };
    let metadata = fstat(&entry)?;
    if may_change_owner(&metadata, former_uid) {
        let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
        fchownat(&entry, c"", Some(uid), Some(gid), AtFlags::AT_EMPTY_PATH)?;
    }
    let inner_folder =
        is_folder(&metadata).then(|| openat(&entry, c".", folder_flags(), Mode::empty()));
    Ok(inner_folder.transpose()?)
}

fn is_folder(metadata: &FileStat) -> bool {
    SFlag::from_bits_truncate(metadata.st_mode & SFlag::S_IFMT.bits()) == SFlag::S_IFDIR
}

/// Returns true if an entry belongs to the former user, or if the service has created it in the home. The former user
/// may have created a second link to a file of the service.
fn may_change_owner(metadata: &FileStat, former_uid: u32) -> bool {
    let is_of_service =
        metadata.st_uid == geteuid().as_raw() && (is_folder(metadata) || metadata.st_nlink == 1);
    metadata.st_uid == former_uid || is_of_service
}

/// Writes a file unless it exists.
fn write_file_if_missing(
    home: &OwnedFd,
    name: &Path,
    text: &str,
    user: Option<UnixUser>,
) -> io::Result<()> {
    let mut parts: Vec<_> = Vec::new();
    for part in name.components() {
        let Component::Normal(part) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
        parts.push(CString::new(part.as_bytes()).map_err(io::Error::other)?);
    }
    let Some(file_name) = parts.pop() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let mut folder = home.try_clone()?;
    for part in parts {
        folder = open_or_create_folder(&folder, &part, user)?;
    }
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW;
    let mode = Mode::S_IRUSR | Mode::S_IWUSR;
    match openat(&folder, file_name.as_c_str(), flags | OFlag::O_CLOEXEC, mode) {
        Ok(file) => {
            let mut file = File::from(file);
            file.write_all(text.as_bytes())?;
            change_owner(&file, user)
        }
        Err(Errno::EEXIST) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Opens or creates a folder of the home. A link of the program is not followed: it could lead to a place that the
/// program itself may not write.
fn open_or_create_folder(
    parent: &OwnedFd,
    name: &CStr,
    user: Option<UnixUser>,
) -> io::Result<OwnedFd> {
    let is_new = match mkdirat(parent, name, Mode::S_IRWXU) {
        Ok(()) => true,
        Err(Errno::EEXIST) => false,
        Err(errno) => return Err(errno.into()),
    };
    let folder = openat(parent, name, folder_flags(), Mode::empty())?;
    // A folder that the program has put in its place meanwhile belongs to the program already.
    if is_new && fstat(&folder)?.st_uid == geteuid().as_raw() {
        change_owner(&folder, user)?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn home(path: &Path) -> AgentHome {
        let files = [("a/b.json", "{}"), ("c", "x")];
        let files = files.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        AgentHome { path: path.to_owned(), initial_files: files }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_home_folder_is_private_and_its_files_are_created_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("homes/x");
        create_or_update(&home(&path), None).unwrap();
        assert_eq!((mode(&path), mode(&path.join("a"))), (0o700, 0o700));
        assert_eq!((mode(&path.join("a/b.json")), mode(&path.join("c"))), (0o600, 0o600));
        fs::write(path.join("c"), "of the program").unwrap();
        fs::remove_file(path.join("a/b.json")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        create_or_update(&home(&path), None).unwrap();
        assert_eq!(fs::read_to_string(path.join("c")).unwrap(), "of the program");
        assert_eq!(fs::read_to_string(path.join("a/b.json")).unwrap(), "{}");
        assert_eq!(mode(&path), 0o700);
    }

    #[test]
    fn a_home_is_restored_as_a_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("homes/x");
        restore(&home(&path), None).unwrap();
        assert_eq!(fs::read_to_string(path.join("a/b.json")).unwrap(), "{}");
        fs::write(path.join("c"), "of the program").unwrap();
        restore(&home(&path), None).unwrap();
        assert_eq!(fs::read_to_string(path.join("c")).unwrap(), "of the program");
        let entry_count = || fs::read_dir(folder.path().join("homes")).unwrap().count();
        assert_eq!(entry_count(), 1);
        let outside =
            AgentHome { initial_files: [("../c".into(), "x".into())].into(), ..home(&path) };
        fs::remove_dir_all(&path).unwrap();
        assert!(restore(&outside, None).is_err());
        assert_eq!(entry_count(), 0);
        let elsewhere = folder.path().join("gone/homes/x");
        assert!(restore(&home(&elsewhere), None).is_err(), "the folder of the service is missing");
        assert!(!folder.path().join("gone").exists());
    }

    #[test]
    fn a_link_in_a_home_folder_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("x"), folder.path().join("other"));
        fs::create_dir(&path).unwrap();
        fs::create_dir(&other).unwrap();
        symlink(&other, path.join("a")).unwrap();
        assert!(create_or_update(&home(&path), None).is_err());
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
    }
}
