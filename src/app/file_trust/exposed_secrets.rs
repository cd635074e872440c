//! Files with secrets that other users of the machine can read.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use algonius_warden::confinement::path_access::{ModeRight, is_readable_file};
use nix::unistd::{Group, Uid, User, getegid, geteuid};

use super::{TrustFault, group, is_on_read_only_mount, quote_for_shell};
use crate::config::Settings;

/// Folder in which container engines mount secrets. Their mode is 0444, and a container has no other users.
const CONTAINER_SECRETS_FOLDER: &str = "/run/secrets";

/// Returns the faults of the files with secrets. `config_file` is the configuration itself, if it is a file.
pub(super) fn exposed_secret_faults(
    settings: &Settings,
    config_file: Option<&Path>,
) -> Vec<TrustFault> {
    let files = &settings.service_files.files_with_secrets;
    let config_label = |path: &Path| match config_file {
        Some(config_file) if std::path::absolute(config_file).is_ok_and(|it| it == path) => {
            "the configuration"
        }
        _ => "a preset",
    };
    let config_files = files.config_files.iter();
    let config_faults = config_files.filter_map(|path| {
        exposure_fault(config_label(path), path, "contains a secret, and other users can read it")
    });
    let secret_files = files.secret_files.iter();
    let secret_faults = secret_files
        .filter_map(|path| exposure_fault("a secret file", path, "is readable by other users"));
    config_faults.chain(secret_faults).collect()
}

/// Returns the fault of a file that other users can read.
fn exposure_fault(file_label: &'static str, path: &Path, reason: &str) -> Option<TrustFault> {
    if !is_readable_file(path, permits_others) {
        return None;
    }
    let real_path = path.canonicalize().ok()?;
    // The mode of such a file cannot be changed here.
    if real_path.starts_with(CONTAINER_SECRETS_FOLDER) || is_on_read_only_mount(&real_path) {
        return None;
    }
    let repair_command = repair_command(&real_path, &fs::metadata(&real_path).ok()?);
    Some(TrustFault { file_label, path: real_path, reason: reason.to_owned(), repair_command })
}

/// Returns true if users other than root and the owner have a right. A group that root has given a file may read it.
fn permits_others(metadata: &Metadata, right: ModeRight) -> bool {
    let owner = Uid::from_raw(metadata.uid());
    let is_file_of_root = metadata.is_file() && owner.is_root();
    metadata.mode() & right.others_bit() != 0
        || metadata.mode() & right.group_bit() != 0
            && !is_file_of_root
            && !group::is_private(metadata.gid(), owner)
}

/// Returns the command that leaves a file readable for root and the user of this process only. This user cannot run it
/// if the file belongs to root.
fn repair_command(path: &Path, metadata: &Metadata) -> String {
    let path = quote_for_shell(path);
    if metadata.uid() != 0 || geteuid().is_root() {
        return format!("chmod 600 {path}");
    }
    let (uid, gid) = (geteuid(), getegid());
    if group::is_private(gid.as_raw(), uid) {
        let group = Group::from_gid(gid).ok().flatten();
        let group = group.map_or(gid.to_string(), |group| group.name);
        return format!("chgrp {group} {path} && chmod 640 {path}");
    }
    let user = User::from_uid(uid).ok().flatten().map_or(uid.to_string(), |user| user.name);
    format!("chown {user} {path} && chmod 600 {path}")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    /// Group of the user `daemon`, and a group without members.
    const SHARED_GROUP: u32 = 1;
    const EMPTY_GROUP: u32 = 65_002;

    #[test]
    fn a_group_with_other_members_is_another_user() {
        if !geteuid().is_root() {
            return; // `tests/it/boundary` does this with the program, and counts it where it cannot.
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "text").expect("a file");
        let group_may_read = |path: &Path, owner: u32, gid: u32| {
            chown(path, Some(owner), Some(gid)).expect("an owner");
            fs::set_permissions(path, fs::Permissions::from_mode(0o750)).expect("a mode");
            permits_others(&fs::metadata(path).expect("a file"), ModeRight::Read)
        };
        assert!(group_may_read(&file, 65_001, SHARED_GROUP));
        assert!(!group_may_read(&file, 65_001, EMPTY_GROUP));
        assert!(!group_may_read(&file, 0, SHARED_GROUP), "root has given it to the group");
        assert!(group_may_read(folder.path(), 0, SHARED_GROUP), "a folder leads to other files");
    }
}
