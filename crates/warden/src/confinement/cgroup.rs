//! Control group of an attempt or a call of a tool: the kernel enforces its limits and kills all its processes at once.
//!
//! A group is a cgroup v2 folder with all processes of one attempt or call, so one write ends them all, however
//! fast they fork. A program enters the group by itself, before its `execve`.

mod cgroup_root;

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::host::resources::{CgroupLimitEvents, Controllers, ResourceLimits};
use algonius_actors::model::id::ExecutionId;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

pub use self::cgroup_root::CgroupRoot;

/// Time within which a group must become empty, and the pause between two checks: killed processes disappear with a
/// delay.
const EMPTY_GROUP_TIMEOUT: Duration = Duration::from_secs(5);
const EMPTY_GROUP_CHECK_PAUSE: Duration = Duration::from_millis(10);

/// Key of an attempt, which is stable across process instances of the service.
type AttemptKey = (ExecutionId, AttemptId);

/// Control groups of a service.
#[derive(Debug)]
pub struct ControlGroups {
    root: CgroupRoot,
    data_dir_id: Uuid,
    controllers: Controllers,
    /// True if the parent group was changed for them.
    has_modified_parent: bool,
}

impl ControlGroups {
    /// Prepares a place for groups or, if none are wanted, handles those that an earlier process instance left there.
    /// Returns `None` if nothing has to be done or can be done.
    #[must_use]
    pub fn open(
        root: Option<CgroupRoot>,
        data_dir_id: Uuid,
        are_groups_enabled: bool,
    ) -> Option<Self> {
        let root = root.filter(CgroupRoot::is_writable)?;
        let controllers = Controllers::default();
        let mut groups = Self { root, data_dir_id, controllers, has_modified_parent: false };
        if are_groups_enabled {
            (groups.controllers, groups.has_modified_parent) = groups.root.enable_controllers();
        } else if groups.group_folders().next().is_none() {
            return None;
        }
        Some(groups)
    }

    /// Returns the limits that a group can enforce.
    #[must_use]
    pub const fn controllers(&self) -> Controllers {
        self.controllers
    }

    /// Creates a group for an attempt, with its limits.
    ///
    /// # Errors
    /// The system's error; nothing remains then.
    pub(crate) fn create(
        &self,
        attempt: AttemptKey,
        resources: &ResourceLimits,
    ) -> io::Result<ControlGroup> {
        let folder = self.group_folder(attempt);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            result => result?,
        }
        let limits_written = write_limits(&folder, self.controllers, resources);
        limits_written.inspect_err(|_| _ = remove_group_folder(&folder))?;
        Ok(ControlGroup::new(folder))
    }

    /// Returns the group of an attempt that an earlier process instance started.
    pub(crate) fn find(&self, attempt: AttemptKey) -> Option<ControlGroup> {
        let folder = self.group_folder(attempt);
        folder.is_dir().then(|| ControlGroup::new(folder))
    }

    /// Ends every group except those of these attempts; returns the number of ended groups.
    pub(crate) async fn end_all_except(&self, excluded_attempts: &HashSet<AttemptKey>) -> usize {
        let excluded_folders: HashSet<_> =
            excluded_attempts.iter().map(|attempt| self.group_folder(*attempt)).collect();
        let mut ended_groups = 0;
        for folder in self.group_folders().filter(|folder| !excluded_folders.contains(folder)) {
            let group = ControlGroup::new(folder);
            group.kill();
            group.remove_when_empty().await;
            ended_groups += 1;
        }
        ended_groups
    }

    /// Ends every group, and reverts the changes to the parent group.
    pub(crate) async fn close(&self) {
        self.end_all_except(&HashSet::new()).await;
        if !self.has_modified_parent {
            return;
        }
        let (root, controllers) = (self.root.clone(), self.controllers);
        if let Err(error) = retry_until_empty(move || root.restore_controllers(controllers)).await {
            tracing::warn!(%error, "control group was not restored");
        }
    }

    fn group_folder(&self, (execution, attempt_id): AttemptKey) -> PathBuf {
        let (id, AttemptId { turn, attempt }) = (execution.0.simple(), attempt_id);
        self.root.folder().join(format!("{}{id}-{turn}-{attempt}", self.prefix()))
    }

    /// Returns the name prefix of all groups of this data directory, and of no other.
    fn prefix(&self) -> String {
        format!("algonius-{}-", self.data_dir_id.simple())
    }

    fn group_folders(&self) -> impl Iterator<Item = PathBuf> {
        let prefix = self.prefix();
        let entries = self.root.folder().read_dir().into_iter().flatten().flatten();
        let is_owned = move |name: &str| name.starts_with(&prefix);
        let owned = entries.filter(move |entry| entry.file_name().to_str().is_some_and(&is_owned));
        owned.map(|entry| entry.path()).filter(|path| path.is_dir())
    }
}

/// Writes the limits that have controllers.
fn write_limits(
    folder: &Path,
    controllers: Controllers,
    resources: &ResourceLimits,
) -> io::Result<()> {
    let write = |name: &str, value: u64| fs::write(folder.join(name), value.to_string());
    if let Some(limit) = resources.max_memory_bytes.filter(|_| controllers.memory) {
        write("memory.max", limit)?;
        // All processes are killed, or none: half a process tree is of no use.
        write("memory.oom.group", 1)?;
        // A kernel without swap has no such file.
        _ = write("memory.swap.max", 0);
    }
    if let Some(limit) = resources.max_processes.filter(|_| controllers.pids) {
        write("pids.max", limit)?;
    }
    Ok(())
}

/// Control group of an attempt.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    folder: PathBuf,
    /// Limit events up to the removal.
    final_limit_events: OnceLock<CgroupLimitEvents>,
    is_removed: AtomicBool,
}

impl ControlGroup {
    fn new(folder: PathBuf) -> Self {
        Self { folder, final_limit_events: OnceLock::new(), is_removed: AtomicBool::new(false) }
    }

    /// Opens the file in which a process enters the group by writing a zero.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn open_procs_file(&self) -> io::Result<OwnedFd> {
        let file = self.folder.join("cgroup.procs");
        Ok(File::options().write(true).create(true).truncate(false).open(file)?.into())
    }

    /// Returns the limits that the group enforces.
    pub(crate) fn enforced_controllers(&self) -> Controllers {
        let is_limited = |name: &str| self.read(name).trim().parse::<u64>().is_ok();
        Controllers { memory: is_limited("memory.max"), pids: is_limited("pids.max") }
    }

    /// Kills all processes of the group at once.
    pub(crate) fn kill(&self) {
        // Kernels before 5.14 have no such file: then only the process holder kills.
        _ = fs::write(self.folder.join("cgroup.kill"), "1");
    }

    /// Returns the limit events so far, or until the end of the group.
    pub(crate) fn limit_events(&self) -> CgroupLimitEvents {
        self.final_limit_events.get().copied().unwrap_or_else(|| CgroupLimitEvents {
            oom_kills: read_counter(&self.read("memory.events"), "oom_kill"),
            failed_forks: read_counter(&self.read("pids.events"), "max"),
        })
    }

    /// Returns true if the group was removed, as far as possible.
    pub(crate) fn is_removed(&self) -> bool {
        self.is_removed.load(Ordering::Relaxed)
    }

    /// Removes the group after it has become empty.
    pub(crate) async fn remove_when_empty(&self) {
        _ = self.final_limit_events.set(self.limit_events());
        let folder = self.folder.clone();
        if let Err(error) = retry_until_empty(move || remove_group_folder(&folder)).await {
            tracing::warn!(%error, "control group was not removed");
        }
        self.is_removed.store(true, Ordering::Relaxed);
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name)).unwrap_or_default()
    }
}

/// Returns the number after a key that has a line of its own.
fn read_counter(lines: &str, key: &str) -> u64 {
    let mut pairs = lines.lines().filter_map(|line| line.split_once(' '));
    let found = pairs.find(|(name, _)| *name == key);
    found.and_then(|(_, number)| number.trim().parse().ok()).unwrap_or_default()
}

/// Retries an operation that needs an empty group until the group is empty.
async fn retry_until_empty(
    operation: impl Fn() -> io::Result<()> + Clone + Send + 'static,
) -> io::Result<()> {
    let deadline = Instant::now() + EMPTY_GROUP_TIMEOUT;
    loop {
        let result = spawn_blocking(operation.clone()).await.map_err(io::Error::other).flatten();
        match result {
            Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < deadline => {
                sleep(EMPTY_GROUP_CHECK_PAUSE).await; // No event reports when the last process has gone.
            }
            result => return result,
        }
    }
}

/// Removes a group, with its child groups. A missing group counts as removed.
fn remove_group_folder(folder: &Path) -> io::Result<()> {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_group_folder(&entry.path())?;
        }
    }
    match fs::remove_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Kills the processes of a group, and removes it.
pub(crate) async fn end_group(group: Option<&Arc<ControlGroup>>) {
    if let Some(group) = group.map(Arc::clone) {
        let group_to_kill = Arc::clone(&group);
        _ = spawn_blocking(move || group_to_kill.kill()).await;
        group.remove_when_empty().await;
    }
}

#[cfg(test)]
mod tests;
