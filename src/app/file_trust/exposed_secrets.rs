//! Files with secrets that other users of the machine can read.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use algonius_warden::confinement::path_access::{ModeRight, is_readable_file};
use nix::unistd::Uid;

use super::{ServiceAccount, TrustFault, group, is_on_read_only_mount, quote_for_shell};
use crate::config::Settings;

/// Folder in which container engines mount secrets. Their mode is 0444, and a container has no other users.
const CONTAINER_SECRETS_FOLDER: &str = "/run/secrets";

/// Returns the faults of the files with secrets. `config_file` is the configuration itself, if it is a file.
pub(super) fn exposed_secret_faults(
    settings: &Settings,
    config_file: Option<&Path>,
    account: ServiceAccount,
) -> Vec<TrustFault> {
    let files = &settings.service_files.files_with_secrets;
    let config_file = config_file.and_then(|path| std::path::absolute(path).ok());
    let config_faults = files.config_files.iter().filter_map(|path| {
        let is_preset = config_file.as_ref() != Some(path);
        let label = if is_preset { "a preset" } else { "the configuration" };
        let reason = "contains a secret, and other users can read it";
        exposure_fault((label, reason), path, account)
    });
    let secret_faults = files.secret_files.iter().filter_map(|path| {
        exposure_fault(("a secret file", "is readable by other users"), path, account)
    });
    config_faults.chain(secret_faults).collect()
}

/// Returns the fault of a file that other users can read.
fn exposure_fault(
    (file_label, reason): (&'static str, &str),
    path: &Path,
    account: ServiceAccount,
) -> Option<TrustFault> {
    let owner = Uid::from_raw(path.metadata().ok()?.uid());
    let permits = |metadata: &Metadata, right| permits_others(metadata, right, (owner, account));
    if !is_readable_file(path, permits) {
        return None;
    }
    let real_path = path.canonicalize().ok()?;
    // A container engine sets this mode, and the service cannot change it.
    if real_path.starts_with(CONTAINER_SECRETS_FOLDER) || is_on_read_only_mount(&real_path) {
        return None;
    }
    let repair_command = repair_command(&real_path, owner, account);
    Some(TrustFault { file_label, path: real_path, reason: reason.to_owned(), repair_command })
}

/// Returns true if the mode of a file, or of a folder above it, gives a right to users other than root, the owner and
/// the user of the service. If root owns both the file and this file or folder, its group does not count, because
/// distributions and orchestrators give groups read access in this way.
fn permits_others(
    metadata: &Metadata,
    right: ModeRight,
    (file_owner, account): (Uid, ServiceAccount),
) -> bool {
    let owner = Uid::from_raw(metadata.uid());
    let is_group_of_root = file_owner.is_root() && owner.is_root();
    metadata.mode() & right.others_bit() != 0
        || metadata.mode() & right.group_bit() != 0
            && !is_group_of_root
            && !group::is_private(metadata.gid(), owner, account)
}

/// Returns the command that takes the right to read a file from other users, and leaves it to the service. Only root
/// can run it on a file of another user.
fn repair_command(path: &Path, owner: Uid, account: ServiceAccount) -> String {
    let path = quote_for_shell(path);
    if owner == account.uid || account.uid.is_root() {
        return format!("chmod 600 {path}");
    }
    if owner.is_root() && group::is_private(account.gid.as_raw(), account.uid, account) {
        return format!("chgrp {} {path} && chmod 640 {path}", account.group_name());
    }
    format!("chown {} {path} && chmod 600 {path}", account.user_name())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown};

    use nix::unistd::{Gid, geteuid};

    use super::*;

    /// Group of the user `daemon`, and a group without members.
    const SHARED_GROUP: u32 = 1;
    const EMPTY_GROUP: u32 = 65_002;

    const USER: Uid = Uid::from_raw(65_001);

    fn account(gid: u32) -> ServiceAccount {
        ServiceAccount { uid: USER, gid: Gid::from_raw(gid) }
    }

    #[test]
    fn a_group_with_other_members_is_another_user() {
        if !geteuid().is_root() {
            // Only root can change owners. `tests/it/boundary` covers this case, and reports if it skips it.
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "text").expect("a file");
        let group_may_read = |path: &Path, owner: Uid, gid: u32, file_owner: Uid| {
            chown(path, Some(owner.as_raw()), Some(gid)).expect("an owner");
            fs::set_permissions(path, fs::Permissions::from_mode(0o750)).expect("a mode");
            let metadata = fs::metadata(path).expect("a file");
            permits_others(&metadata, ModeRight::Read, (file_owner, account(EMPTY_GROUP)))
        };
        let root = Uid::from_raw(0);
        assert!(group_may_read(&file, USER, SHARED_GROUP, USER));
        assert!(!group_may_read(&file, USER, EMPTY_GROUP, USER));
        assert!(!group_may_read(&file, root, SHARED_GROUP, root), "root permits the group");
        assert!(!group_may_read(folder.path(), root, SHARED_GROUP, root), "root permits the group");
        assert!(group_may_read(folder.path(), root, SHARED_GROUP, USER));
    }

    #[test]
    fn the_repair_leaves_the_file_to_the_service() {
        let (root, stranger) = (Uid::from_raw(0), Uid::from_raw(65_003));
        let of_root = ServiceAccount { uid: root, gid: Gid::from_raw(0) };
        for (owner, account, expected) in [
            (USER, account(EMPTY_GROUP), "chmod 600 /a"),
            (root, of_root, "chmod 600 /a"),
            (root, account(EMPTY_GROUP), "chgrp 65002 /a && chmod 640 /a"),
            (root, account(SHARED_GROUP), "chown 65001 /a && chmod 600 /a"),
            (stranger, account(EMPTY_GROUP), "chown 65001 /a && chmod 600 /a"),
        ] {
            assert_eq!(repair_command(Path::new("/a"), owner, account), expected);
        }
    }
}
