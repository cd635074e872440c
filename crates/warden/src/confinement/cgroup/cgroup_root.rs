//! Place for control groups: the service's own cgroup v2 group, if it is delegated.
//!
//! The kernel enforces limits only for groups below one that has no processes itself. So the service moves, with its
//! process holders and their programs, into a group beside those of the attempts; it does so only if no other process
//! is in its group.

use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use algonius_actors::model::host::resources::Controllers;
use nix::unistd::{AccessFlags, Pid, access};

use crate::process::process_label::label_of;
use crate::process::procfs::HOLDER_PROCESS_NAME;
use crate::process::procfs::{proc_folder, read_proc_text};

/// Group of the service itself, beside those of the attempts. A service manager that knows the name (as systemd does)
/// starts the service in it.
const SERVICE_GROUP: &str = "algonius-service";

/// Number of rounds of moving processes: each process may fork meanwhile.
const MAX_MOVE_ROUNDS: u32 = 20;

/// Folder in which groups are created.
#[derive(Debug, Clone)]
pub struct CgroupRoot(PathBuf);

impl CgroupRoot {
    /// Returns the group of this process, or `None` if the system has no cgroup v2.
    #[must_use]
    pub fn for_this_process() -> Option<Self> {
        let cgroup_file = read_proc_text("/proc/self/cgroup")?;
        let mounts = read_proc_text("/proc/self/mountinfo")?;
        own_cgroup_folder(&cgroup_file, &mounts).map(Self)
    }

    /// Returns a folder as a place; tests use a plain folder.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    pub(in crate::confinement::cgroup) fn folder(&self) -> &Path {
        &self.0
    }

    /// Returns true if groups can be created here and processes can be moved between them.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        let may_write = |file: &Path| access(file, AccessFlags::W_OK).is_ok();
        may_write(&self.0) && may_write(&self.0.join("cgroup.procs"))
    }

    /// Returns the limits that the groups have, or could have after the preparation.
    #[must_use]
    pub fn available_controllers(&self) -> Controllers {
        let name = if self.may_enable_controllers() {
            "cgroup.controllers"
        } else {
            "cgroup.subtree_control"
        };
        parse_controllers(&self.read(name))
    }

    /// Prepares the place for groups, as far as that affects no other process; returns the limits of the groups, and
    /// true if anything was changed.
    pub(in crate::confinement::cgroup) fn enable_controllers(&self) -> (Controllers, bool) {
        let (enabled, available) =
            (parse_controllers(&self.read("cgroup.subtree_control")), self.available_controllers());
        if enabled == available {
            return (enabled, false);
        }
        match self.move_into_service_group().and_then(|()| self.set_controllers('+', available)) {
            Ok(()) => (available, true),
            Err(error) => {
                tracing::warn!(%error, "control groups cannot hold limits here");
                (enabled, false)
            }
        }
    }

    /// Reverts [`enable_controllers`](Self::enable_controllers): with enabled controllers, no process can be started in
    /// this group any more.
    ///
    /// # Errors
    /// `ResourceBusy` while other processes of the service are alive; a repeated call continues.
    pub(in crate::confinement::cgroup) fn restore_controllers(
        &self,
        controllers: Controllers,
    ) -> io::Result<()> {
        self.set_controllers('-', controllers)?;
        fs::write(self.0.join("cgroup.procs"), Pid::this().to_string())?;
        fs::remove_dir(self.0.join(SERVICE_GROUP))
    }

    /// Returns true if this is not the root group, and no other process is in it.
    fn may_enable_controllers(&self) -> bool {
        let is_root = !self.0.join("cgroup.type").exists();
        !is_root && self.processes().into_iter().all(may_be_moved)
    }

    fn move_into_service_group(&self) -> io::Result<()> {
        let service_group = self.0.join(SERVICE_GROUP);
        fs::create_dir_all(&service_group)?;
        for _ in 0..MAX_MOVE_ROUNDS {
            let processes = self.processes();
            if processes.is_empty() {
                break;
            }
            for pid in processes {
                // The process may have ended; the following switch detects a failure.
                _ = fs::write(service_group.join("cgroup.procs"), pid.to_string());
            }
        }
        Ok(())
    }

    fn set_controllers(&self, sign: char, controllers: Controllers) -> io::Result<()> {
        let selected = [("memory", controllers.memory), ("pids", controllers.pids)];
        let selected = selected.into_iter().filter(|(_, is_wanted)| *is_wanted);
        let changes: Vec<_> = selected.map(|(name, _)| format!("{sign}{name}")).collect();
        fs::write(self.0.join("cgroup.subtree_control"), changes.join(" "))
    }

    fn processes(&self) -> Vec<i32> {
        self.read("cgroup.procs").lines().filter_map(|line| line.parse().ok()).collect()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }
}

/// Returns true for processes that may be moved: this one, a process holder, or a held program.
fn may_be_moved(pid: i32) -> bool {
    let name = || fs::read_to_string(proc_folder(pid).join("comm")).unwrap_or_default();
    pid == Pid::this().as_raw()
        || label_of(pid).is_some()
        || name().trim_end() == HOLDER_PROCESS_NAME
}

/// Returns the supported controllers in a list.
fn parse_controllers(list: &str) -> Controllers {
    let has = |name| list.split_ascii_whitespace().any(|word| word == name);
    Controllers { memory: has("memory"), pids: has("pids") }
}

/// Returns the folder in which a process creates groups, from its files in `/proc`.
fn own_cgroup_folder(cgroup_file: &str, mounts: &str) -> Option<PathBuf> {
    let cgroup_path = cgroup_file.lines().find_map(|line| line.strip_prefix("0::"))?;
    let (root, mount_point) = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        after.starts_with("cgroup2 ").then(|| Some((fields.next()?, fields.next()?)))?
    })?;
    // A group outside of the mounted part cannot be reached.
    let relative = Path::new(cgroup_path).strip_prefix(root).ok()?;
    if relative.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    let folder = Path::new(mount_point).join(relative);
    Some(match folder.file_name() {
        Some(name) if name == SERVICE_GROUP => folder.parent()?.to_owned(),
        _ => folder,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "30 24 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
        31 24 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";

    fn own_folder(cgroup_file: &str, mounts: &str) -> Option<String> {
        own_cgroup_folder(cgroup_file, mounts).map(|folder| folder.display().to_string())
    }

    #[test]
    fn a_group_is_found_below_its_cgroup2_mount() {
        let folder = own_folder("4:pids:/a\n0::/user/b\n", MOUNTS);
        assert_eq!(folder.as_deref(), Some("/sys/fs/cgroup/unified/user/b"));
        assert_eq!(own_folder("4:pids:/a\n", MOUNTS), None);
        assert_eq!(own_folder("0::/\n", ""), None);
    }

    #[test]
    fn a_service_in_its_own_group_places_others_next_to_it() {
        let folder = own_folder("0::/unit.service/algonius-service\n", MOUNTS);
        assert_eq!(folder.as_deref(), Some("/sys/fs/cgroup/unified/unit.service"));
    }

    #[test]
    fn a_mount_may_show_a_part_of_the_group_hierarchy() {
        let part = "31 24 0:27 /pod/one /cgroups rw - cgroup2 cgroup2 rw\n";
        assert_eq!(own_folder("0::/pod/one/a\n", part).as_deref(), Some("/cgroups/a"));
        assert_eq!(own_folder("0::/pod/two\n", part), None);
        assert_eq!(own_folder("0::/../two\n", MOUNTS), None);
    }

    #[test]
    fn only_controllers_with_limits_are_used() {
        let controllers = parse_controllers("cpuset cpu io memory hugetlb pids rdma\n");
        assert_eq!(controllers, Controllers { memory: true, pids: true });
        assert_eq!(parse_controllers("hugetlb"), Controllers::default());
    }
}
