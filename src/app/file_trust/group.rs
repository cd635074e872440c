//! Checks whether a group has members besides the owner of a file.

use std::{fs, io};

use nix::unistd::{Gid, Group, Uid, User};

use super::ServiceAccount;

/// Returns true if only root, the owner and the user of the service belong to a group. Distributions create such a
/// group for each user, and let it write the files that the user creates.
pub(super) fn is_private(gid: u32, owner: Uid, account: ServiceAccount) -> bool {
    let trusted_uids = [Uid::from_raw(0), owner, account.uid];
    let is_trusted = |name: &String| {
        User::from_name(name).ok().flatten().is_some_and(|user| trusted_uids.contains(&user.uid))
    };
    let members = match Group::from_gid(Gid::from_raw(gid)) {
        Ok(Some(group)) => group.mem,
        Ok(None) => Vec::new(),
        Err(_) => return false,
    };
    let passwd_content = match fs::read("/etc/passwd") {
        Ok(users) => users,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(_) => return false,
    };
    members.iter().all(is_trusted)
        && !has_other_primary_members(&passwd_content, gid, &trusted_uids)
}

/// Returns true if a group is the primary group of another user in the list of users; the list of groups does not
/// contain those. Names may have any encoding.
fn has_other_primary_members(passwd_content: &[u8], gid: u32, trusted_uids: &[Uid]) -> bool {
    passwd_content.split(|byte| *byte == b'\n').any(|line| {
        let mut fields = line.split(|byte| *byte == b':').skip(2).map(parse_number);
        match (fields.next(), fields.next()) {
            (Some(Some(uid)), Some(Some(primary_gid))) => {
                primary_gid == gid && !trusted_uids.contains(&Uid::from_raw(uid))
            }
            _ => false,
        }
    })
}

fn parse_number(digits: &[u8]) -> Option<u32> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_any_encoding_hide_no_member_of_a_group() {
        let trusted = [Uid::from_raw(0), Uid::from_raw(1000)];
        let has_others = |users: &[u8]| has_other_primary_members(users, 50, &trusted);
        assert!(!has_others(b"root:x:0:0::/:/bin/sh\nme:x:1000:50::/:/bin/sh\n"));
        assert!(!has_others(b"m\xfcller:x:1001:51::/:/bin/sh\nbroken\nx:x:a:50:\n"));
        assert!(has_others(b"me:x:1000:50::/:/bin/sh\nother:x:1001:50:M\xfcller:/:/bin/sh"));
        assert!(has_others(b"m\xfcller:x:1001:50::/:/bin/sh\n"));
        assert!(has_others(b"\xff\nother:x:1002:50::/h\xe9:/bin/sh\n"));
    }
}
