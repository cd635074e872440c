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
use algonius_actors::model::program::User;

/// Name of the file.
const USERS_FILE: &str = "agent-users.json";

/// User ids by agent.
#[derive(Debug)]
pub(crate) struct UserAssignments {
    file: PathBuf,
    range: Option<(u32, u32)>,
    assigned: BTreeMap<String, u32>,
}

/// Reason why an agent gets no user.
#[derive(Debug, thiserror::Error)]
pub(super) enum UserError {
    /// The configuration names no range.
    #[error("`server.agent_users` names no range of users")]
    NoRange,
    /// Every id of the range is assigned.
    #[error("every number of `server.agent_users` belongs to an agent; widen the range")]
    Exhausted,
    /// The file can be neither read nor written.
    #[error("`{USERS_FILE}` in `data_dir` can be neither read nor written: {0}")]
    File(#[from] io::Error),
}

impl UserAssignments {
    /// Reads the ids from a folder.
    ///
    /// # Errors
    /// Fails if the file exists and cannot be read.
    pub(crate) fn read(data_dir: &Path, range: Option<(u32, u32)>) -> Result<Self, UserError> {
        let file = data_dir.join(USERS_FILE);
        let assigned = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::other)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error.into()),
        };
        Ok(Self { file, range, assigned })
    }

    /// Returns the user of an agent, and assigns one at the first call.
    ///
    /// # Errors
    /// Fails if no user is free, or if the file cannot be written.
    pub(crate) fn of(&mut self, agent: &AgentId) -> Result<User, UserError> {
        let (first, last) = self.range.ok_or(UserError::NoRange)?;
        let known = self.assigned.get(agent.as_str()).filter(|uid| (first..=last).contains(*uid));
        let uid = match known {
            Some(uid) => *uid,
            None => self.assign_id(agent, first..=last)?,
        };
        Ok(User { uid, gid: uid })
    }

    fn assign_id(
        &mut self,
        agent: &AgentId,
        mut range: std::ops::RangeInclusive<u32>,
    ) -> Result<u32, UserError> {
        let assigned_uids: BTreeSet<u32> = self.assigned.values().copied().collect();
        let uid = range.find(|uid| !assigned_uids.contains(uid)).ok_or(UserError::Exhausted)?;
        self.assigned.insert(agent.to_string(), uid);
        let text = serde_json::to_vec(&self.assigned).map_err(io::Error::other)?;
        let temporary_file = self.file.with_extension("new");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary_file)?;
        // The number is on the disk before a file of the agent can belong to it.
        file.write_all(&text).and_then(|()| file.sync_all())?;
        fs::rename(temporary_file, &self.file)?;
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
        let (a, b) = (users.of(&id("a")).unwrap(), users.of(&id("b")).unwrap());
        assert_ne!(a, b);
        let mut users = read();
        assert_eq!(users.of(&id("b")).unwrap(), b);
        let c = users.of(&id("c")).unwrap();
        assert!(c != a && c != b, "the number of an agent was given again");
        assert!(matches!(users.of(&id("d")), Err(UserError::Exhausted)));
        assert!(matches!(
            UserAssignments::read(folder.path(), None).unwrap().of(&id("a")),
            Err(UserError::NoRange)
        ));
    }
}
