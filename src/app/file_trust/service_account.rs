//! Account of the operating system under which the service runs.

use nix::unistd::{Gid, Group, Uid, User, getegid, geteuid};

/// User of the service, with its primary group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServiceAccount {
    pub(super) uid: Uid,
    pub(super) gid: Gid,
}

impl ServiceAccount {
    /// Returns the account of this process.
    pub(crate) fn of_process() -> Self {
        Self { uid: geteuid(), gid: getegid() }
    }

    /// Returns the account of a user; `None` if this machine has no such user.
    pub(crate) fn of_user(name: &str) -> Option<Self> {
        let user = User::from_name(name).ok().flatten()?;
        Some(Self { uid: user.uid, gid: user.gid })
    }

    /// Returns the name of the user, or its number if it has no name.
    pub(super) fn user_name(self) -> String {
        let user = User::from_uid(self.uid).ok().flatten();
        user.map_or(self.uid.to_string(), |user| user.name)
    }

    /// Returns the name of the group, or its number if it has no name.
    pub(super) fn group_name(self) -> String {
        let group = Group::from_gid(self.gid).ok().flatten();
        group.map_or(self.gid.to_string(), |group| group.name)
    }
}
