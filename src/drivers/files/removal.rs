//! Removal of a program's files from a folder, by descriptors: the service follows no link of an agent, and neither the
//! depth nor the modes of the folders matter.

use std::ffi::{CStr, CString};
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::{Mode, fchmod, fstat};
use nix::unistd::{UnlinkatFlags, fchown, getegid, geteuid, unlinkat};
use rustix::fs::{flistxattr, fremovexattr};
use tokio::time::Instant;

/// Time limit for emptying a folder. A program's files must not delay the next execution for long.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(60);

/// Number of names that are read at once.
const NAMES_PER_READ: usize = 4096;

/// Greatest size in bytes of a file's list of extended attributes. The kernel has no larger list.
const MAX_ATTRIBUTE_LIST_BYTES: usize = 1 << 16;

/// Opens a folder at a path whose last component is not a link.
///
/// # Errors
/// Fails if no folder exists there.
pub(in crate::drivers) fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(nix::fcntl::open(path, folder_flags(), Mode::empty())?)
}

/// Opens a folder that a program could change, whatever mode the program gave it. The last component of the path is
/// not a link, and programs cannot change its parent.
///
/// # Errors
/// Fails if no folder exists there.
pub(in crate::drivers) fn open_folder_with_owner_access(path: &Path) -> io::Result<OwnedFd> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    set_owner_access_and_open(&open_folder(parent)?, &CString::new(name.as_bytes())?)
}

/// Opens a folder in an open folder, unless it is a link.
///
/// # Errors
/// Fails if no folder with this name exists.
pub(in crate::drivers) fn open_folder_at(folder: &impl AsFd, name: &CStr) -> io::Result<OwnedFd> {
    Ok(openat(folder, name, folder_flags(), Mode::empty())?)
}

fn folder_flags() -> OFlag {
    OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC
}

/// Returns a folder to the service's ownership, with mode 0700 and without extended attributes. From then on no process
/// of the agent's user changes anything directly in it.
///
/// # Errors
/// Fails if the system refuses it.
pub(in crate::drivers) fn reclaim_folder(folder: &impl AsFd) -> io::Result<()> {
    let metadata = fstat(folder)?;
    let service = geteuid();
    if metadata.st_uid != service.as_raw() {
        fchown(folder, Some(service), Some(getegid()))?;
    }
    // The program may have widened the mode, or narrowed it so that the service cannot read the folder.
    if metadata.st_mode & 0o7777 != 0o700 {
        fchmod(folder, Mode::S_IRWXU)?;
    }
    remove_extended_attributes(folder)
}

/// Removes the extended attributes that a program can leave on a folder: up to 64 kB of any text, and access control
/// lists.
fn remove_extended_attributes(folder: &impl AsFd) -> io::Result<()> {
    // Nearly always there is no attribute, or a short one.
    let mut names = vec![0_u8; 256];
    let mut list_result = flistxattr(folder, &mut *names);
    if list_result == Err(rustix::io::Errno::RANGE) {
        names.resize(MAX_ATTRIBUTE_LIST_BYTES, 0);
        list_result = flistxattr(folder, &mut *names);
    }
    let length = match list_result {
        Err(rustix::io::Errno::NOTSUP) => 0,
        list_result => list_result?,
    };
    names.truncate(length);
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    // Attributes of the kernel's security modules belong to the system, and no program sets them.
    for name in names.filter(|name| !name.starts_with(b"security.")) {
        fremovexattr(folder, name)?;
    }
    Ok(())
}

/// Returns true if a folder has no entries.
///
/// # Errors
/// Fails if the folder cannot be read.
pub(in crate::drivers) fn is_folder_empty(folder: &impl AsFd) -> io::Result<bool> {
    Ok(entry_names(folder, 1)?.is_empty())
}

/// Removes all entries of a folder. The folder itself stays.
///
/// # Errors
/// Fails if an entry cannot be removed, or if it takes too long.
pub(in crate::drivers) fn remove_folder_contents(folder: &impl AsFd) -> io::Result<()> {
    remove_folder_contents_until(folder, Instant::now() + REMOVAL_TIMEOUT)
}

/// Removes all entries of a folder as [`remove_folder_contents`] does, but only until the deadline.
///
/// # Errors
/// Fails if an entry cannot be removed, or if the deadline passes.
pub(in crate::drivers) fn remove_folder_contents_until(
    folder: &impl AsFd,
    deadline: Instant,
) -> io::Result<()> {
    let mut moved_count = 0;
    loop {
        let names = entry_names(folder, NAMES_PER_READ)?;
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            if Instant::now() > deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            remove_entry(folder, &name, &mut moved_count, deadline)?;
        }
    }
}

/// Removes an entry. Nested folders are first moved up, so that depth costs no descriptors and no stack.
fn remove_entry(
    folder: &impl AsFd,
    name: &CStr,
    moved_count: &mut u64,
    deadline: Instant,
) -> io::Result<()> {
    if try_remove(folder, name)? {
        return Ok(());
    }
    let inner = set_owner_access_and_open(folder, name)?;
    loop {
        let names = entry_names(&inner, NAMES_PER_READ)?;
        if names.is_empty() {
            break;
        }
        for name in names {
            if Instant::now() > deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if !try_remove(&inner, &name)? {
                move_up(&inner, &name, folder, moved_count)?;
            }
        }
    }
    unlinkat(folder, name, UnlinkatFlags::RemoveDir)?;
    Ok(())
}

/// Removes a file, a link or an empty folder; returns false for a folder with entries.
fn try_remove(folder: &impl AsFd, name: &CStr) -> io::Result<bool> {
    match unlinkat(folder, name, UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => return Ok(true),
        Err(Errno::EISDIR) => {}
        Err(errno) => return Err(errno.into()),
    }
    match unlinkat(folder, name, UnlinkatFlags::RemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => Ok(true),
        Err(Errno::ENOTEMPTY | Errno::EEXIST) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Moves a folder into the top folder, under a name that is free there.
fn move_up(
    from: &impl AsFd,
    name: &CStr,
    top: &impl AsFd,
    moved_count: &mut u64,
) -> io::Result<()> {
    // Renaming a folder into another parent needs write permission on the folder itself.
    drop(set_owner_access_and_open(from, name)?);
    loop {
        *moved_count += 1;
        let free_name = CString::new(format!(".moved-{moved_count}")).map_err(io::Error::other)?;
        match renameat(from, name, top, free_name.as_c_str()) {
            Ok(()) => return Ok(()),
            Err(Errno::EEXIST | Errno::ENOTEMPTY | Errno::ENOTDIR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Opens a folder with a mode that lets its owner change it.
fn set_owner_access_and_open(folder: &impl AsFd, name: &CStr) -> io::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let path_fd = openat(folder, name, flags, Mode::empty())?;
    // `fchmod` does not accept an `O_PATH` descriptor, and other descriptors need read permission on the folder.
    let path = format!("/proc/self/fd/{}", path_fd.as_raw_fd());
    let mode = fs::metadata(&path)?.permissions().mode();
    if mode & 0o700 != 0o700 {
        fs::set_permissions(&path, Permissions::from_mode(0o700))?;
    }
    // Not by name again: the name may lead to another folder by now.
    open_folder_at(&path_fd, c".")
}

/// Returns the names of at most `limit` entries of a folder.
fn entry_names(folder: &impl AsFd, limit: usize) -> io::Result<Vec<CString>> {
    // A new descriptor: the read position in a folder belongs to the open file description.
    let mut entries = Dir::from_fd(open_folder_at(folder, c".")?)?;
    let mut names = Vec::new();
    for entry in entries.iter() {
        let name = entry?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name);
        }
        if names.len() == limit {
            break;
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use nix::sys::stat::mkdirat;
    use rustix::fs::{XattrFlags, fsetxattr};

    use super::*;

    #[test]
    fn a_reclaimed_folder_keeps_no_mode_and_no_attributes() {
        let folder = tempfile::tempdir().unwrap();
        let folder_fd = open_folder(folder.path()).unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o3077)).unwrap();
        let text = b"raw input of a caller";
        // Enough attributes that their names fill more than the first buffer.
        let set_attribute = |number| {
            fsetxattr(&folder_fd, format!("user.{number:0>200}"), text, XattrFlags::empty())
        };
        if !(0..3).all(|number| set_attribute(number).is_ok()) {
            algonius_skips::skip("needs a file system with extended attributes");
            return;
        }
        reclaim_folder(&folder_fd).unwrap();
        assert_eq!(fstat(&folder_fd).unwrap().st_mode & 0o7777, 0o700);
        let mut names = [0_u8; 1024];
        let length = flistxattr(&folder_fd, &mut names).unwrap();
        assert!(!String::from_utf8_lossy(&names[..length]).contains("user."));
    }

    #[test]
    fn a_folder_is_emptied_at_any_depth_and_mode() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("kept"), "").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path_in_folder = |name: &str| folder.path().join(name);
        fs::create_dir_all(path_in_folder("closed/inner/deeper")).unwrap();
        fs::write(path_in_folder("closed/inner/deeper/file"), "").unwrap();
        fs::write(path_in_folder(".moved-1"), "").unwrap();
        symlink(outside.path(), path_in_folder("closed/inner/link")).unwrap();
        symlink(outside.path(), path_in_folder("link")).unwrap();
        for name in ["closed/inner/deeper", "closed/inner", "closed"] {
            fs::set_permissions(path_in_folder(name), Permissions::from_mode(0o0)).unwrap();
        }
        let mut deep = open_folder(folder.path()).unwrap();
        for _ in 0..5000 {
            mkdirat(&deep, "d", Mode::S_IRWXU).unwrap();
            deep = open_folder_at(&deep, c"d").unwrap();
        }
        let top = open_folder(folder.path()).unwrap();
        remove_folder_contents(&top).unwrap();
        assert!(is_folder_empty(&top).unwrap());
        assert!(outside.path().join("kept").exists());
    }

    /// Fails without root only: root needs no mode.
    #[test]
    fn a_folder_closed_by_its_program_is_opened() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("closed");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("answer"), "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o0)).unwrap();
        assert!(!is_folder_empty(&open_folder_with_owner_access(&path).unwrap()).unwrap());
        let link = parent.path().join("link");
        symlink(&path, &link).unwrap();
        open_folder_with_owner_access(&link).unwrap_err();
    }

    #[test]
    fn emptying_a_folder_ends_in_time() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let top = open_folder(folder.path()).unwrap();
        let error = remove_folder_contents_until(&top, Instant::now()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
