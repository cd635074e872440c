//! Scratch slots: folders for confined programs, each with the Landlock ruleset that allows it.
//!
//! A ruleset has a rule for each path of the read allow-list, some hundreds on a usual machine. Executions of one agent
//! differ in their scratch folder only. So a slot is a folder with a ruleset that is built once; executions use it one
//! after the other. A slot is used again only after no process of its last execution is alive, and after everything
//! that the execution left was removed.
//!
//! A slot is the folder `scratch/N/own`. Programs may change what is in it. Only the service may change
//! `scratch/N`, so no program can move or replace the folder of its slot.

use std::collections::HashSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};

use algonius_actors::model::program::UnixUser;
use algonius_warden::confinement::bubblewrap::ViewError;
use algonius_warden::confinement::landlock::{LandlockDomain, Ruleset, abi_version};
use algonius_warden::confinement::network_access::NetworkAccess;
use nix::sys::stat::fstat;
use tokio::time::Instant;

use super::removal::{open_folder, open_folder_with_owner_access, remove_folder_contents_until};

/// Name of the directory of the slots, in the service's runtime folder.
const SLOTS_FOLDER: &str = "scratch";

/// Name of the folder of an execution, in the folder of a slot.
const EXECUTION_FOLDER: &str = "own";

/// Number of slots that are kept for later executions; further ones are removed when their execution ends.
const MAX_IDLE_SLOTS: usize = 64;

/// Number of names that are tried for one slot: an earlier process of the service may have left some.
const MAX_NAME_TRIES: usize = 10_000;

/// Slots of a service, which all agents share.
#[derive(Debug)]
pub(in crate::drivers) struct ScratchSlots {
    folder: PathBuf,
    #[expect(
        clippy::disallowed_types,
        reason = "held to push or take one entry, and never awaited in"
    )]
    idle_slots: std::sync::Mutex<Vec<ScratchSlot>>,
    next_number: AtomicU64,
    /// First number of this process of the service; lower ones are of earlier processes.
    first_number: u64,
    rulesets_without_file_rules: RulesetsWithoutFileRules,
}

/// Rulesets that restrict no file, by the network of the program; each is built at its first use.
#[derive(Debug, Default)]
struct RulesetsWithoutFileRules {
    full_network: OnceLock<Ruleset>,
    empty_network_namespace: OnceLock<Ruleset>,
    refused_network: OnceLock<Ruleset>,
}

/// Device and number of a folder.
type FolderIdentity = (u64, u64);

/// Folder that one execution may use at a time. Dropping it removes the folder, if it is empty.
#[derive(Debug)]
pub(in crate::drivers) struct ScratchSlot {
    number: u64,
    /// Folder that programs may change.
    execution_folder: PathBuf,
    descriptor: Arc<OwnedFd>,
    domain: LandlockDomain,
    /// Identities of the private folders of the domain, whose rules the ruleset has.
    private_folder_identities: Vec<Option<FolderIdentity>>,
    user: Option<UnixUser>,
    ruleset: Ruleset,
}

impl ScratchSlots {
    /// Returns the slots in a runtime folder. Slots of an earlier process of the service keep their numbers.
    pub(in crate::drivers) fn new(runtime_dir: &Path) -> Self {
        let folder = runtime_dir.join(SLOTS_FOLDER);
        // Programs of an earlier process instance may still use their slots, so no number is used again.
        let first_number = slot_numbers(&folder).max().map_or(0, |last| last.saturating_add(1));
        Self {
            folder,
            idle_slots: Vec::new().into(),
            next_number: AtomicU64::new(first_number),
            first_number,
            rulesets_without_file_rules: RulesetsWithoutFileRules::default(),
        }
    }

    /// Takes an idle slot of this domain. Examines only its folder and the homes of agents, so it blocks at most on
    /// those.
    pub(in crate::drivers) fn take_idle_slot(
        &self,
        domain: &LandlockDomain,
        user: Option<UnixUser>,
    ) -> Option<ScratchSlot> {
        loop {
            let slot = self.take_matching_slot(domain, user)?;
            if !slot.is_in_place() {
                // The runtime folder was removed with the slot in it. Another folder may be at its path now.
                slot.detach();
            } else if slot.private_folder_identities == private_folder_identities(domain) {
                return Some(slot);
            }
            // Otherwise a home was removed and created again, to which the ruleset gives no access.
        }
    }

    fn take_matching_slot(
        &self,
        domain: &LandlockDomain,
        user: Option<UnixUser>,
    ) -> Option<ScratchSlot> {
        // A panic leaves the list whole, because each change is one insertion or one removal.
        let mut idle = self.idle_slots.lock().unwrap_or_else(PoisonError::into_inner);
        let index = idle.iter().position(|slot| slot.user == user && slot.domain == *domain)?;
        Some(idle.swap_remove(index))
    }

    /// Creates a slot. Opens all paths of the domain, so it may block.
    ///
    /// # Errors
    /// Fails if the folder or the ruleset cannot be created.
    pub(in crate::drivers) fn create(
        &self,
        domain: LandlockDomain,
        user: Option<UnixUser>,
    ) -> Result<ScratchSlot, ViewError> {
        let (number, execution_folder) = self.create_folders(user)?;
        let private_folder_identities = private_folder_identities(&domain);
        // The slot keeps the domain without its folder, because `take` compares the domains of different slots.
        let mut domain_with_folder = domain.clone();
        if let Some(files) = &mut domain_with_folder.files {
            files.private_folders.push(execution_folder.clone());
        }
        let ruleset_and_folder = domain_with_folder
            .build_ruleset()
            .and_then(|ruleset| Ok((ruleset, open_folder(&execution_folder)?)));
        match ruleset_and_folder {
            Ok((ruleset, folder)) => {
                let descriptor = Arc::new(folder);
                Ok(ScratchSlot {
                    number,
                    execution_folder,
                    descriptor,
                    domain,
                    private_folder_identities,
                    user,
                    ruleset,
                })
            }
            Err(error) => {
                remove_slot_folders(&execution_folder);
                Err(error)
            }
        }
    }

    fn create_folders(&self, user: Option<UnixUser>) -> io::Result<(u64, PathBuf)> {
        // The user of the agent has to pass through these folders, and need not list them.
        let mode = if user.is_some() { 0o711 } else { 0o700 };
        // The check of the service creates the folder above again, with its mode and its other contents.
        match DirBuilder::new().mode(mode).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        // The folder may be there from an agent without a user, and the umask may have removed rights.
        let set_mode = |path: &Path| match user {
            Some(_) => fs::set_permissions(path, fs::Permissions::from_mode(mode)),
            None => Ok(()),
        };
        set_mode(&self.folder)?;
        for _ in 0..MAX_NAME_TRIES {
            // Relaxed, because only the uniqueness of the number matters.
            let number = self.next_number.fetch_add(1, Ordering::Relaxed);
            let path = self.folder.join(number.to_string());
            match DirBuilder::new().mode(mode).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    set_mode(&path)?;
                    let execution_folder = path.join(EXECUTION_FOLDER);
                    DirBuilder::new().mode(0o700).create(&execution_folder)?;
                    return Ok((number, execution_folder));
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Returns a slot whose execution has ended with all processes that it started.
    pub(in crate::drivers) fn release(&self, slot: ScratchSlot) {
        let mut idle = self.idle_slots.lock().unwrap_or_else(PoisonError::into_inner);
        // A slot with an older list of readable folders is never requested again.
        let is_outdated = |other: &ScratchSlot| other.has_other_readable_paths(&slot);
        let (outdated, current) = idle.drain(..).partition::<Vec<_>, _>(is_outdated);
        *idle = current;
        let surplus = if idle.len() < MAX_IDLE_SLOTS {
            idle.push(slot);
            None
        } else {
            Some(slot)
        };
        drop(idle); // Folders are removed without the lock.
        drop((outdated, surplus));
    }

    /// Returns a ruleset that restricts no file, and separates its processes from others; `None` if the kernel has no
    /// Landlock.
    ///
    /// # Errors
    /// Fails if the kernel does not create it.
    pub(in crate::drivers) fn ruleset_without_file_rules(
        &self,
        network: NetworkAccess,
    ) -> Result<Option<Ruleset>, ViewError> {
        if abi_version().is_none() {
            return Ok(None);
        }
        let RulesetsWithoutFileRules {
            full_network: full,
            empty_network_namespace: empty_namespace,
            refused_network: refused,
        } = &self.rulesets_without_file_rules;
        let cell = match network {
            NetworkAccess::Full => full,
            NetworkAccess::EmptyNamespace => empty_namespace,
            NetworkAccess::Refused => refused,
        };
        if let Some(ruleset) = cell.get() {
            return Ok(Some(ruleset.clone()));
        }
        // Two threads may build it at once, and the first one is kept: `OnceLock::get_or_try_init` is not stable.
        let ruleset = LandlockDomain { files: None, network }.build_ruleset()?;
        Ok(Some(cell.get_or_init(|| ruleset).clone()))
    }
}

impl ScratchSlot {
    /// Returns the number of the slot, by which a later process of the service finds its folder.
    pub(in crate::drivers) const fn number(&self) -> u64 {
        self.number
    }

    /// Returns the path of the folder that programs may change.
    pub(in crate::drivers) fn execution_folder(&self) -> &Path {
        &self.execution_folder
    }

    /// Returns the descriptor of that folder.
    pub(in crate::drivers) fn descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.descriptor)
    }

    /// Returns the ruleset of the slot's programs.
    pub(in crate::drivers) fn ruleset(&self) -> Ruleset {
        self.ruleset.clone()
    }

    /// Returns true if the folder is still at its path.
    fn is_in_place(&self) -> bool {
        let descriptor_identity =
            fstat(&self.descriptor).ok().map(|status| (status.st_dev, status.st_ino));
        descriptor_identity.is_some()
            && descriptor_identity == folder_identity(&self.execution_folder)
    }

    /// Leaves the folder and its content for the next process of the service.
    pub(in crate::drivers) fn detach(mut self) {
        // An empty path is the sign for `drop` to remove nothing.
        self.execution_folder.clear();
    }

    fn has_other_readable_paths(&self, other: &Self) -> bool {
        let lists = (self.domain.files.as_ref(), other.domain.files.as_ref());
        // Compared by address: a list has hundreds of paths, and a list that was made again is another allocation.
        matches!(lists, (Some(old), Some(new)) if !Arc::ptr_eq(&old.readable_paths, &new.readable_paths))
    }
}

impl Drop for ScratchSlot {
    fn drop(&mut self) {
        if !self.execution_folder.as_os_str().is_empty() {
            // The folder is not empty if a file of its execution could not be removed, which was logged.
            remove_slot_folders(&self.execution_folder);
        }
    }
}

fn folder_identity(path: &Path) -> Option<FolderIdentity> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

fn private_folder_identities(domain: &LandlockDomain) -> Vec<Option<FolderIdentity>> {
    let folders = domain.files.iter().flat_map(|files| &files.private_folders);
    folders.map(|folder| folder_identity(folder)).collect()
}

/// Removes the empty folder of a slot, and its parent.
fn remove_slot_folders(execution_folder: &Path) {
    execution_folder.ancestors().take(2).for_each(|folder| _ = fs::remove_dir(folder));
}

/// Returns the folder of an attempt that an earlier process of the service has started, and the parent folder that
/// belongs to it. The slot is the one that the service had recorded: files in folders that agents can write have no
/// influence.
pub(in crate::drivers) fn attempt_folder_paths(
    runtime_dir: &Path,
    slot: Option<u64>,
    name: &str,
) -> (PathBuf, Option<PathBuf>) {
    let slot = slot.map(|number| runtime_dir.join(SLOTS_FOLDER).join(number.to_string()));
    slot.map_or_else(
        || (runtime_dir.join(name), None),
        |slot| (slot.join(EXECUTION_FOLDER), Some(slot)),
    )
}

impl ScratchSlots {
    /// Removes the folders of executions that ended while the service was down; `is_continued` returns true if a folder
    /// name belongs to an execution that continues, and `continued_slots` are the slots of such executions. What is
    /// left at the deadline stays until the next start. Returns the number of removed folders.
    pub(in crate::drivers) fn remove_stale_folders(
        &self,
        (runtime_dir, deadline): (&Path, Instant),
        is_continued: &dyn Fn(&str) -> bool,
        continued_slots: &HashSet<u64>,
    ) -> usize {
        // Slots of this process may be in use already.
        let is_stale_slot =
            |number: &u64| *number < self.first_number && !continued_slots.contains(number);
        let stale_slots =
            slot_numbers(&self.folder).filter(is_stale_slot).map(|number| number.to_string());
        let stale_slots = stale_slots.map(|number| self.folder.join(number));
        let removed_slots = stale_slots.filter(|slot| {
            let had_files =
                has_entries(&slot.join(EXECUTION_FOLDER)) || !slot.join(EXECUTION_FOLDER).exists();
            remove_folder_until(slot, deadline) && had_files
        });
        // The runtime folder also contains sockets, keys and the slots.
        let entries = fs::read_dir(runtime_dir).into_iter().flatten().flatten();
        let is_stale_folder = |name: &str| is_attempt_folder(name) && !is_continued(name);
        let stale_folders =
            entries.filter(|entry| entry.file_name().to_str().is_some_and(is_stale_folder));
        removed_slots.count()
            + stale_folders.filter(|entry| remove_folder_until(&entry.path(), deadline)).count()
    }
}

/// Returns the numbers of the slots in a folder.
fn slot_numbers(folder: &Path) -> impl Iterator<Item = u64> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn has_entries(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

fn remove_folder_until(path: &Path, deadline: Instant) -> bool {
    let result = open_folder_with_owner_access(path)
        .and_then(|folder| remove_folder_contents_until(&folder, deadline));
    let result = result.and_then(|()| fs::remove_dir(path));
    if let Err(error) = &result {
        tracing::warn!(%error, "failed to remove the folder of an ended execution");
    }
    result.is_ok()
}

/// Returns true if a name is that of an attempt's folder: an execution's id, a turn and an attempt.
fn is_attempt_folder(name: &str) -> bool {
    let parts: Vec<_> = name.rsplitn(3, '-').collect();
    matches!(parts.as_slice(), [attempt, turn, id]
        if attempt.parse::<u32>().is_ok() && turn.parse::<u32>().is_ok() && id.len() == 36)
}

#[cfg(test)]
mod tests;
