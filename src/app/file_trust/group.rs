//! Checks whether a group has members besides the owner of a file.

use std::fs;

use nix::unistd::{Gid, Group, Uid, User, geteuid};

/// Returns true if only root, the owner and this process's user belong to a group. Distributions create such a group
/// for each user, and let it write the files that the user creates.
pub(super) fn is_private(gid: u32, owner: Uid) -> bool {
    let trusted_uids = [Uid::from_raw(0), owner, geteuid()];
    let is_trusted = |name: &String| {
        User::from_name(name).ok().flatten().is_some_and(|user| trusted_uids.contains(&user.uid))
    };
    let members = match Group::from_gid(Gid::from_raw(gid)) {
        Ok(Some(group)) => group.mem,
        Ok(None) => Vec::new(),
        Err(_) => return false,
    };
    members.iter().all(is_trusted) && !has_other_primary_members(gid, &trusted_uids)
}

/// Returns true if a group is the primary group of another user; the list of groups does not contain those.
fn has_other_primary_members(gid: u32, trusted_uids: &[Uid]) -> bool {
    let Ok(users) = fs::read_to_string("/etc/passwd") else { return false };
    users.lines().any(|line| {
        let mut fields = line.split(':').skip(2).map(str::parse::<u32>);
        match (fields.next(), fields.next()) {
            (Some(Ok(uid)), Some(Ok(primary_gid))) => {
                primary_gid == gid && !trusted_uids.contains(&Uid::from_raw(uid))
            }
            _ => false,
        }
    })
}
