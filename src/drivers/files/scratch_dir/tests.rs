//! Tests of the execution's own folder, whatever a program puts into it.

use std::ffi::OsStr;
use std::os::unix::fs::{PermissionsExt, symlink};

use nix::unistd::geteuid;

use super::*;
use crate::drivers::files::program_file::{ProgramFileRefusal, ProgramOutputFile};

const USER: UnixUser = UnixUser { uid: 65_531, gid: 65_531 };

fn owner_and_mode(path: &Path) -> (u32, u32) {
    let metadata = fs::symlink_metadata(path).unwrap();
    (metadata.uid(), metadata.permissions().mode() & 0o777)
}

/// Test that needs root; for another user the folder has no separate owner.
#[test]
fn a_folder_changes_its_owner_once_it_is_filled() {
    let temp_dir = tempfile::tempdir().unwrap();
    let owner = geteuid().is_root().then_some(USER);
    let (service_uid, user_uid) =
        (geteuid().as_raw(), owner.map_or(geteuid().as_raw(), |it| it.uid));
    let path = temp_dir.path().join("own");
    let folder = ScratchDir::create(path.clone(), owner).unwrap();
    folder.create_folder("files").unwrap();
    folder.write("input.txt", b"input").unwrap();
    folder.write("files/1-a", b"file").unwrap();
    assert_eq!(owner_and_mode(&path), (service_uid, 0o700));
    folder.transfer_ownership().unwrap();
    assert_eq!(owner_and_mode(&path), (user_uid, 0o700));
    assert_eq!(owner_and_mode(&path.join("files")), (user_uid, 0o700));
    assert_eq!(owner_and_mode(&path.join("input.txt")), (user_uid, 0o600));
    assert_eq!(owner_and_mode(&path.join("files/1-a")), (user_uid, 0o600));
}

#[test]
fn no_link_in_a_folder_is_followed() {
    let temp_dir = tempfile::tempdir().unwrap();
    let outside = temp_dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "of another").unwrap();
    let before = owner_and_mode(&outside.join("file"));
    let path = temp_dir.path().join("own");
    let owner = geteuid().is_root().then_some(USER);
    let folder = ScratchDir::create(path.clone(), owner).unwrap();
    symlink(&outside, path.join("files")).unwrap();
    symlink(outside.join("file"), path.join("input.txt")).unwrap();
    assert!(folder.create_folder("files").is_err());
    assert!(folder.write("files/1-a", b"x").is_err());
    assert!(folder.write("input.txt", b"x").is_err());
    let file = ProgramOutputFile::new(&folder, OsStr::new("input.txt"), owner).unwrap();
    assert_eq!(file.read_contents(100).unwrap_err(), ProgramFileRefusal::Link);
    // The folder stays the same when its path leads elsewhere.
    fs::rename(&path, temp_dir.path().join("moved")).unwrap();
    symlink(&outside, &path).unwrap();
    let file = ProgramOutputFile::new(&folder, OsStr::new("file"), None).unwrap();
    assert_eq!(file.read_contents(100).unwrap_err(), ProgramFileRefusal::Missing);
    folder.remove_blocking();
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "of another");
    assert_eq!(owner_and_mode(&outside.join("file")), before);
}

#[test]
fn a_user_reads_files_by_their_modes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "").unwrap();
    let own_metadata = fs::metadata(&path).unwrap();
    for (mode, other_can_read, owner_can_read) in
        [(0o600, false, true), (0o604, true, true), (0o044, true, false)]
    {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!(can_read_or_enter(USER, &metadata), other_can_read, "{mode:o}");
        let service = UnixUser { uid: own_metadata.uid(), gid: own_metadata.gid() };
        assert_eq!(can_read_or_enter(service, &metadata), owner_can_read, "{mode:o}");
    }
}

/// Test that the modes of parent folders count too, and that a link in the path is not followed.
#[test]
fn a_user_reads_only_below_accessible_folders() {
    let folder = tempfile::tempdir().unwrap();
    let temp_dir = fs::canonicalize(folder.path()).unwrap();
    let subfolder = temp_dir.join("closed");
    fs::create_dir(&subfolder).unwrap();
    fs::write(subfolder.join("file"), "text").unwrap();
    symlink(&subfolder, temp_dir.join("link")).unwrap();
    let set_mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    set_mode(&temp_dir, 0o755).unwrap();
    set_mode(&subfolder.join("file"), 0o644).unwrap();
    let is_readable =
        |path: &Path| open_regular_file(path, Some(USER)).is_ok_and(|file| file.is_some());
    for (mode, expected) in [(0o700, false), (0o711, true), (0o744, false)] {
        set_mode(&subfolder, mode).unwrap();
        assert_eq!(is_readable(&subfolder.join("file")), expected, "{mode:o}");
        assert!(!is_readable(&temp_dir.join("link/file")));
    }
    set_mode(&subfolder, 0o711).unwrap();
    set_mode(&subfolder.join("file"), 0o600).unwrap();
    assert!(!is_readable(&subfolder.join("file")));
    assert!(open_regular_file(&subfolder.join("file"), None).unwrap().is_some());
}
