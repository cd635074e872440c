//! The control group of an attempt: what the kernel itself holds to limits and kills at once.
//!
//! A folder of version 2, in which everything of one attempt lives, and so is found and ended by one
//! word, however fast it forks. A program enters by itself, before it begins.

mod place;

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use algonius_actors::model::execution::Stamp;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::resources::{Controllers, Refusals, Resources};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

pub use self::place::Place;

/// How long a group may take to become empty, and the pause between two looks: what is killed
/// vanishes by and by.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

/// An attempt, as it is named in an earlier life too.
type Attempt = (ExecutionId, Stamp);

/// The groups of a service.
#[derive(Debug)]
pub struct Groups {
    place: Place,
    instance: Uuid,
    controllers: Controllers,
    /// Whether the place was changed for them.
    is_prepared: bool,
}

impl Groups {
    /// Makes a place ready for groups, or, where none are wanted, looks after those that an earlier
    /// life left there. `None` when there is nothing to be done, or nothing can be.
    #[must_use]
    pub fn open(place: Option<Place>, instance: Uuid, are_wanted: bool) -> Option<Self> {
        let place = place.filter(Place::is_ours)?;
        let controllers = Controllers::default();
        let mut groups = Self { place, instance, controllers, is_prepared: false };
        if are_wanted {
            (groups.controllers, groups.is_prepared) = groups.place.prepare();
        } else if groups.left().next().is_none() {
            return None;
        }
        Some(groups)
    }

    /// Which limits a group holds.
    #[must_use]
    pub const fn controllers(&self) -> Controllers {
        self.controllers
    }

    /// A group for an attempt, with its limits.
    ///
    /// # Errors
    /// What the system said; nothing is left then.
    pub(super) fn make(&self, attempt: Attempt, resources: &Resources) -> io::Result<Group> {
        let folder = self.folder(attempt);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => made?,
        }
        let limited = limit(&folder, self.controllers, resources);
        limited.inspect_err(|_| _ = remove(&folder))?;
        Ok(Group::new(folder))
    }

    /// The group of an attempt that an earlier life began.
    pub(super) fn find(&self, attempt: Attempt) -> Option<Group> {
        let folder = self.folder(attempt);
        folder.is_dir().then(|| Group::new(folder))
    }

    /// Ends every group but those of these attempts; how many there were.
    pub(super) async fn end_all_but(&self, these: &HashSet<Attempt>) -> usize {
        let spared: HashSet<_> = these.iter().map(|attempt| self.folder(*attempt)).collect();
        let mut ended = 0;
        for folder in self.left().filter(|folder| !spared.contains(folder)) {
            let group = Group::new(folder);
            group.kill();
            group.close().await;
            ended += 1;
        }
        ended
    }

    /// Ends every group, and gives back what was changed for them.
    pub(super) async fn close(&self) {
        self.end_all_but(&HashSet::new()).await;
        if !self.is_prepared {
            return;
        }
        let (place, controllers) = (self.place.clone(), self.controllers);
        if let Err(error) = once_empty(move || place.give_back(controllers)).await {
            tracing::warn!(%error, "the control group is left with what was changed in it");
        }
    }

    fn folder(&self, (execution, stamp): Attempt) -> PathBuf {
        let (id, Stamp { turn, attempt }) = (execution.0.simple(), stamp);
        self.place.folder().join(format!("{}{id}-{turn}-{attempt}", self.prefix()))
    }

    /// So begin the names of all groups of this data directory, and of no other.
    fn prefix(&self) -> String {
        format!("algonius-{}-", self.instance.simple())
    }

    fn left(&self) -> impl Iterator<Item = PathBuf> {
        let prefix = self.prefix();
        let entries = self.place.folder().read_dir().into_iter().flatten().flatten();
        let is_its = move |name: &str| name.starts_with(&prefix);
        let its = entries.filter(move |entry| entry.file_name().to_str().is_some_and(&is_its));
        its.map(|entry| entry.path()).filter(|path| path.is_dir())
    }
}

/// Writes the limits for which there are controllers.
fn limit(folder: &Path, held: Controllers, resources: &Resources) -> io::Result<()> {
    let write = |name: &str, value: u64| fs::write(folder.join(name), value.to_string());
    if let Some(most) = resources.memory.filter(|_| held.memory) {
        write("memory.max", most)?;
        // All of it is killed, or none: half a tree that lives on does no good.
        write("memory.oom.group", 1)?;
        // A kernel without swap has no such file.
        _ = write("memory.swap.max", 0);
    }
    if let Some(most) = resources.processes.filter(|_| held.pids) {
        write("pids.max", most)?;
    }
    Ok(())
}

/// The group of an attempt.
#[derive(Debug)]
pub(super) struct Group {
    folder: PathBuf,
    /// What it had refused when it was about to be removed.
    last: OnceLock<Refusals>,
    is_closed: AtomicBool,
}

impl Group {
    fn new(folder: PathBuf) -> Self {
        Self { folder, last: OnceLock::new(), is_closed: AtomicBool::new(false) }
    }

    /// Where a process enters that writes a zero.
    ///
    /// # Errors
    /// What the system said.
    pub(super) fn entrance(&self) -> io::Result<OwnedFd> {
        let file = self.folder.join("cgroup.procs");
        Ok(File::options().write(true).create(true).truncate(false).open(file)?.into())
    }

    /// Which limits it holds.
    pub(super) fn held(&self) -> Controllers {
        let is_limited = |name: &str| self.read(name).trim().parse::<u64>().is_ok();
        Controllers { memory: is_limited("memory.max"), pids: is_limited("pids.max") }
    }

    /// Kills everything in it, at once.
    pub(super) fn kill(&self) {
        // A kernel before 5.14 does not know the word: then its warden does it alone.
        _ = fs::write(self.folder.join("cgroup.kill"), "1");
    }

    /// What it has refused, until now or until its end.
    pub(super) fn refusals(&self) -> Refusals {
        self.last.get().copied().unwrap_or_else(|| Refusals {
            killed: count(&self.read("memory.events"), "oom_kill"),
            unstarted: count(&self.read("pids.events"), "max"),
        })
    }

    /// Whether it was removed, as far as it could be.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Removes it, once it is empty.
    pub(super) async fn close(&self) {
        _ = self.last.set(self.refusals());
        let folder = self.folder.clone();
        if let Err(error) = once_empty(move || remove(&folder)).await {
            tracing::warn!(%error, "a control group is left");
        }
        self.is_closed.store(true, Ordering::Relaxed);
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name)).unwrap_or_default()
    }
}

/// The number behind a word that has a line of its own.
fn count(lines: &str, word: &str) -> u64 {
    let mut pairs = lines.lines().filter_map(|line| line.split_once(' '));
    let found = pairs.find(|(name, _)| *name == word);
    found.and_then(|(_, number)| number.trim().parse().ok()).unwrap_or_default()
}

/// Does what needs an empty group, again and again until it is empty.
async fn once_empty(act: impl Fn() -> io::Result<()> + Clone + Send + 'static) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        let done = spawn_blocking(act.clone()).await.map_err(io::Error::other).flatten();
        match done {
            Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < until => {
                sleep(PAUSE).await; // Nothing tells when the last of it has gone.
            }
            done => return done,
        }
    }
}

/// Removes a group, with those that were made in it. What is gone already is removed.
fn remove(folder: &Path) -> io::Result<()> {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path())?;
        }
    }
    match fs::remove_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Kills what is in a group, and removes it.
pub(super) async fn end(group: Option<&Arc<Group>>) {
    if let Some(group) = group.map(Arc::clone) {
        let killed = Arc::clone(&group);
        _ = spawn_blocking(move || killed.kill()).await;
        group.close().await;
    }
}

#[cfg(test)]
mod tests;
