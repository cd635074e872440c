//! Users of agents with `user = "dynamic"`: each agent keeps its first user id.
//!
//! The ids are stored in a file beside the ledger. No id is assigned to a second agent while others are free, because
//! files of a removed agent would then belong to the second one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use algonius_actors::model::id::AgentId;
use algonius_actors::model::program::UnixUser;

/// Name of the file.
const USERS_FILE: &str = "agent-users.json";

/// User ids by agent.
#[derive(Debug)]
pub(crate) struct UserAssignments {
    file: PathBuf,
    uid_range: Option<(u32, u32)>,
    uids_by_agent: BTreeMap<String, u32>,
}

/// Reason why an agent gets no user.
#[derive(Debug, thiserror::Error)]
pub(super) enum UserError {
    /// The configuration names no range.
    #[error("`server.agent_users` names no range of users")]
    NoRange,
    /// Every id of the range is assigned.
    #[error("every number of `server.agent_users` belongs to an agent; widen the range")]
    RangeExhausted,
    /// The file can be neither read nor written.
    #[error("`{USERS_FILE}` in `data_dir` can be neither read nor written: {0}")]
    File(#[from] io::Error),
}

impl UserAssignments {
    /// Reads the ids from a folder.
    ///
    /// # Errors
    /// Fails if the file exists and cannot be read.
    pub(crate) fn read(data_dir: &Path, uid_range: Option<(u32, u32)>) -> Result<Self, UserError> {
        let file = data_dir.join(USERS_FILE);
        let uids_by_agent = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::other)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error.into()),
        };
        Ok(Self { file, uid_range, uids_by_agent })
    }

    /// Returns the user of an agent, and assigns one at the first call.
    ///
    /// # Errors
    /// Fails if no user is free, or if the file cannot be written.
    pub(crate) fn find_or_assign(&mut self, agent: &AgentId) -> Result<UnixUser, UserError> {
        let (first, last) = self.uid_range.ok_or(UserError::NoRange)?;
        let assigned_uid =
            self.uids_by_agent.get(agent.as_str()).filter(|uid| (first..=last).contains(*uid));
        let uid = match assigned_uid {
            Some(uid) => *uid,
            None => self.assign_uid(agent, first..=last)?,
        };
        Ok(UnixUser { uid, gid: uid })
    }

    fn assign_uid(
        &mut self,
        agent: &AgentId,
        mut uid_range: std::ops::RangeInclusive<u32>,
    ) -> Result<u32, UserError> {
        let assigned_uids: BTreeSet<u32> = self.uids_by_agent.values().copied().collect();
        let uid =
            uid_range.find(|uid| !assigned_uids.contains(uid)).ok_or(UserError::RangeExhausted)?;
        self.uids_by_agent.insert(agent.to_string(), uid);
        let json = serde_json::to_vec(&self.uids_by_agent).map_err(io::Error::other)?;
        let temporary_path = self.file.with_extension("new");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary_path)?;
        // The number is on the disk before a file of the agent can belong to it.
        file.write_all(&json).and_then(|()| file.sync_all())?;
        fs::rename(temporary_path, &self.file)?;
        Ok(uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_keeps_a_user_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let id = |name: &str| AgentId::new(name).unwrap();
        let read = || UserAssignments::read(folder.path(), Some((2000, 2002))).unwrap();
        let mut users = read();
        let (first_user, second_user) =
            (users.find_or_assign(&id("a")).unwrap(), users.find_or_assign(&id("b")).unwrap());
        assert_ne!(first_user, second_user);
        let mut users = read();
        assert_eq!(users.find_or_assign(&id("b")).unwrap(), second_user);
        let third_user = users.find_or_assign(&id("c")).unwrap();
        assert!(
            third_user != first_user && third_user != second_user,
            "the number of an agent was given again"
        );
        assert!(matches!(users.find_or_assign(&id("d")), Err(UserError::RangeExhausted)));
        assert!(matches!(
            UserAssignments::read(folder.path(), None).unwrap().find_or_assign(&id("a")),
            Err(UserError::NoRange)
        ));
    }
}
