//! Decides from modes whether a user can reach or read a file: the modes of the file and of each folder above it must
//! permit it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Ids of a user without further groups and without capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserIds {
    /// User id.
    pub uid: u32,
    /// Id of the user's only group.
    pub gid: u32,
}

/// Right that a mode gives to a class of users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModeRight {
    /// Right to read a file.
    Read,
    /// Right to pass through a folder.
    Pass,
}

impl ModeRight {
    /// Returns the bit of the mode for the class `others`.
    #[must_use]
    pub const fn others_bit(self) -> u32 {
        match self {
            Self::Read => 0o004,
            Self::Pass => 0o001,
        }
    }

    /// Returns the bit of the mode for the class `group`.
    #[must_use]
    pub const fn group_bit(self) -> u32 {
        self.others_bit() << 3
    }

    const fn owner_bit(self) -> u32 {
        self.others_bit() << 6
    }
}

/// Returns true if a path leads to a file that a reader can read. `permits` decides from metadata if the reader has a
/// right.
pub fn is_readable_file(path: &Path, permits: impl Fn(&Metadata, ModeRight) -> bool) -> bool {
    let is_permitted = path.metadata().is_ok_and(|metadata| permits(&metadata, ModeRight::Read));
    is_permitted && path.is_file() && is_reachable(path, permits)
}

/// Returns true if a path exists, and a user can pass the folders above it. `permits` decides from metadata if the user
/// has a right.
fn is_reachable(path: &Path, permits: impl Fn(&Metadata, ModeRight) -> bool) -> bool {
    // The links on the path need not be passed: the user can use the path without links.
    let Ok(real_path) = path.canonicalize() else { return false };
    real_path
        .ancestors()
        .skip(1)
        .all(|folder| folder.metadata().is_ok_and(|metadata| permits(&metadata, ModeRight::Pass)))
}

/// Returns true if a path exists, and a user can pass the folders above it.
#[must_use]
pub fn is_reachable_by_user(path: &Path, user: UserIds) -> bool {
    is_reachable(path, |metadata, right| permits_user(metadata, right, Some(user)))
}

/// Returns true if a user can read a file. `None` stands for a user whose ids are not assigned yet: the rights of
/// others apply.
#[must_use]
pub fn is_readable_by_user(path: &Path, user: Option<UserIds>) -> bool {
    is_readable_file(path, |metadata, right| permits_user(metadata, right, user))
}

fn permits_user(metadata: &Metadata, right: ModeRight, user: Option<UserIds>) -> bool {
    let bit = match user {
        Some(user) if metadata.uid() == user.uid => right.owner_bit(),
        Some(user) if metadata.gid() == user.gid => right.group_bit(),
        _ => right.others_bit(),
    };
    metadata.mode() & bit != 0
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::path::PathBuf;

    use nix::unistd::geteuid;

    use super::*;

    const OWNER: UserIds = UserIds { uid: 65_001, gid: 65_002 };
    const GROUP_MEMBER: UserIds = UserIds { uid: 65_003, ..OWNER };
    const OTHER_USER: UserIds = UserIds { uid: 65_004, gid: 65_005 };

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
    }

    /// Returns a folder that everyone can pass, and a file in it that `OWNER` owns.
    fn shared_file() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        set_mode(folder.path(), 0o711);
        let file = folder.path().join("file");
        fs::write(&file, "text").expect("a file");
        chown(&file, Some(OWNER.uid), Some(OWNER.gid)).expect("an owner");
        (folder, file)
    }

    #[test]
    fn the_class_of_a_user_decides() {
        if !geteuid().is_root() {
            // Only root can change owners. `tests/it/boundary` covers this case, and reports if it skips it.
            return;
        }
        let (_folder, file) = shared_file();
        let readers = [Some(OWNER), Some(GROUP_MEMBER), Some(OTHER_USER), None];
        for (mode, expected) in [
            (0o400, [true, false, false, false]),
            (0o040, [false, true, false, false]),
            (0o004, [false, false, true, true]),
            (0o733, [true, false, false, false]),
        ] {
            set_mode(&file, mode);
            assert_eq!(readers.map(|user| is_readable_by_user(&file, user)), expected, "{mode:o}");
        }
    }

    #[test]
    fn a_closed_folder_protects_an_open_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let (closed, link) = (folder.path().join("closed"), folder.path().join("link"));
        fs::create_dir(&closed).expect("a folder");
        let file = closed.join("file");
        fs::write(&file, "text").expect("a file");
        symlink(&file, &link).expect("a link");
        for path in [folder.path(), &file] {
            set_mode(path, 0o755);
        }
        for (mode, expected) in [(0o700, false), (0o744, false), (0o711, true)] {
            set_mode(&closed, mode);
            for path in [&file, &link] {
                assert_eq!(is_readable_by_user(path, None), expected, "{mode:o} {path:?}");
            }
        }
        assert!(!is_readable_by_user(&folder.path().join("missing"), None));
        assert!(!is_readable_by_user(folder.path(), None), "a folder");
    }
}
