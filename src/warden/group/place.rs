//! Where control groups can be made: our own group of version 2, where it is delegated to us.
//!
//! Limits are for the groups below one that holds no processes itself. So the service moves, with its
//! wardens and what they hold, into a group beside those of the attempts; it does so only where
//! nobody else lives in its group.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use algonius_actors::model::resources::Controllers;
use nix::unistd::{AccessFlags, Pid, access};

use super::super::label::label_of;
use super::super::proc::folder as process;
use super::super::process::WARDEN;

/// The group of the service itself, beside those of the attempts. A starter that knows of it (as
/// systemd does) puts the service there at once.
const OWN: &str = "algonius-service";

/// How often it is looked for processes that are still to be moved: each may fork meanwhile.
const ROUNDS: u32 = 20;

/// A folder in which groups are made.
#[derive(Debug, Clone)]
pub struct Place(PathBuf);

impl Place {
    /// The one in which this process is; `None` where the system has no groups of version 2.
    #[must_use]
    pub fn own() -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        find(&own, &mounts).map(Self)
    }

    /// A folder that is one, or plays one.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    /// Whether groups can be made here and processes moved between them.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        let may = |file: &Path| access(file, AccessFlags::W_OK).is_ok();
        may(&self.0) && may(&self.0.join("cgroup.procs"))
    }

    /// Which limits the groups have, or would have once this is made ready for them.
    #[must_use]
    pub fn controllers(&self) -> Controllers {
        let name = if self.may_change() { "cgroup.controllers" } else { "cgroup.subtree_control" };
        words(&self.read(name))
    }

    /// Makes it ready for groups, as far as that harms nobody; the limits that they have, and whether
    /// anything was changed for that.
    pub(super) fn prepare(&self) -> (Controllers, bool) {
        let (now, possible) = (words(&self.read("cgroup.subtree_control")), self.controllers());
        if now == possible {
            return (now, false);
        }
        match self.move_out().and_then(|()| self.switch('+', possible)) {
            Ok(()) => (possible, true),
            Err(error) => {
                tracing::warn!(%error, "control groups cannot hold limits here");
                (now, false)
            }
        }
    }

    /// Undoes [`prepare`](Self::prepare): with the limits of others in it, nothing can be started in
    /// this group any more.
    ///
    /// # Errors
    /// `ResourceBusy` while others of ours live; doing it again goes on.
    pub(super) fn give_back(&self, controllers: Controllers) -> io::Result<()> {
        self.switch('-', controllers)?;
        fs::write(self.0.join("cgroup.procs"), Pid::this().to_string())?;
        fs::remove_dir(self.0.join(OWN))
    }

    /// Whether it is below another, and nobody else lives in it.
    fn may_change(&self) -> bool {
        let is_root = !self.0.join("cgroup.type").exists();
        !is_root && self.processes().into_iter().all(is_ours)
    }

    fn move_out(&self) -> io::Result<()> {
        let own = self.0.join(OWN);
        fs::create_dir_all(&own)?;
        for _ in 0..ROUNDS {
            let processes = self.processes();
            if processes.is_empty() {
                break;
            }
            for pid in processes {
                // It may have ended; whether all went well, the switch tells.
                _ = fs::write(own.join("cgroup.procs"), pid.to_string());
            }
        }
        Ok(())
    }

    fn switch(&self, sign: char, which: Controllers) -> io::Result<()> {
        let named = [("memory", which.memory), ("pids", which.pids)];
        let named = named.into_iter().filter(|(_, is_wanted)| *is_wanted);
        let words: Vec<_> = named.map(|(name, _)| format!("{sign}{name}")).collect();
        fs::write(self.0.join("cgroup.subtree_control"), words.join(" "))
    }

    fn processes(&self) -> Vec<i32> {
        self.read("cgroup.procs").lines().filter_map(|line| line.parse().ok()).collect()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }
}

/// Whether a process may be moved: this one, a warden, or what a warden holds.
fn is_ours(pid: i32) -> bool {
    let name = || fs::read_to_string(process(pid).join("comm")).unwrap_or_default();
    pid == Pid::this().as_raw() || label_of(pid).is_some() || name().trim_end() == WARDEN
}

/// The controllers of a list that are of use.
fn words(list: &str) -> Controllers {
    let has = |name| list.split_ascii_whitespace().any(|word| word == name);
    Controllers { memory: has("memory"), pids: has("pids") }
}

/// The folder in which a process makes groups, from what `/proc` tells of it.
fn find(own: &str, mounts: &str) -> Option<PathBuf> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let (root, place) = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        after.starts_with("cgroup2 ").then(|| Some((fields.next()?, fields.next()?)))?
    })?;
    // What lies outside of what is mounted cannot be reached.
    let below = Path::new(own).strip_prefix(root).ok()?;
    if below.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    let folder = Path::new(place).join(below);
    Some(match folder.file_name() {
        Some(name) if name == OWN => folder.parent()?.to_owned(),
        _ => folder,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "30 24 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
        31 24 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";

    fn found(own: &str, mounts: &str) -> Option<String> {
        find(own, mounts).map(|folder| folder.display().to_string())
    }

    #[test]
    fn a_group_is_found_below_the_mount_of_its_version() {
        let place = found("4:pids:/a\n0::/user/b\n", MOUNTS);
        assert_eq!(place.as_deref(), Some("/sys/fs/cgroup/unified/user/b"));
        assert_eq!(found("4:pids:/a\n", MOUNTS), None);
        assert_eq!(found("0::/\n", ""), None);
    }

    #[test]
    fn a_service_that_stands_in_its_own_group_makes_others_beside_it() {
        let place = found("0::/unit.service/algonius-service\n", MOUNTS);
        assert_eq!(place.as_deref(), Some("/sys/fs/cgroup/unified/unit.service"));
    }

    #[test]
    fn what_is_mounted_may_be_a_part_of_all_groups() {
        let part = "31 24 0:27 /pod/one /cgroups rw - cgroup2 cgroup2 rw\n";
        assert_eq!(found("0::/pod/one/a\n", part).as_deref(), Some("/cgroups/a"));
        assert_eq!(found("0::/pod/two\n", part), None);
        assert_eq!(found("0::/../two\n", MOUNTS), None);
    }

    #[test]
    fn only_controllers_that_hold_limits_are_of_use() {
        let found = words("cpuset cpu io memory hugetlb pids rdma\n");
        assert_eq!(found, Controllers { memory: true, pids: true });
        assert_eq!(words("hugetlb"), Controllers::default());
    }
}
