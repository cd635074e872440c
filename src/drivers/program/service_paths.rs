//! Files of the service, which programs may neither read nor change: shared by all agents, and replaced when
//! the configuration is read again.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use algonius_warden::confinement::bubblewrap::Guarded;
use algonius_warden::confinement::landlock::{AllowList, Readable};

/// Files of the service. Cheap to share.
#[derive(Debug, Default)]
pub struct ServicePaths(
    #[expect(
        clippy::disallowed_types,
        reason = "held for some calls of lstat, and never awaited in"
    )]
    std::sync::Mutex<ProtectedPaths>,
);

#[derive(Debug, Default)]
struct ProtectedPaths {
    guarded: Arc<Guarded>,
    allow_list: AllowList,
}

impl ServicePaths {
    /// Returns the files that programs may not read, and those that they may not change. Lists folders, so it may
    /// block.
    #[must_use]
    pub fn new(guarded: Guarded) -> Self {
        let paths = Self::default();
        paths.set(guarded);
        paths
    }

    /// Replaces the files. A running program keeps those of its start. May block.
    pub fn set(&self, guarded: Guarded) {
        let allow_list = AllowList::new(guarded.unreadable.clone());
        self.with(|paths| *paths = ProtectedPaths { guarded: Arc::new(guarded), allow_list });
    }

    /// Returns the files.
    pub(super) fn guarded(&self) -> Arc<Guarded> {
        self.with(|paths| Arc::clone(&paths.guarded))
    }

    /// Returns everything that a program may read, if the list is current without listing a folder.
    pub(super) fn readable_at_hand(&self) -> Option<Arc<Readable>> {
        self.with(|paths| paths.allow_list.at_hand())
    }

    /// Returns everything that a program may read. Lists folders again if one has changed, so it may block.
    pub(super) fn readable(&self) -> Arc<Readable> {
        self.with(|paths| paths.allow_list.current())
    }

    /// Returns true if a path is one of the files that programs may not read, or is below one.
    pub(super) fn hides(&self, path: &Path) -> bool {
        self.guarded().unreadable.iter().any(|hidden| path.starts_with(hidden))
    }

    /// Returns true if a program that may change this folder would reach a file that programs may not change.
    pub(super) fn is_opened_by(&self, folder: &Path) -> bool {
        let guarded = self.guarded();
        let opens = |file: &PathBuf| file.starts_with(folder) || folder.starts_with(file);
        // A file of the service may be a link, and whoever changes the folder of its target changes the file.
        let real = |file: &PathBuf| file.canonicalize().unwrap_or_else(|_missing| file.clone());
        let mut files = guarded.unreadable.iter().chain(&guarded.unwritable);
        files.any(|file| opens(file) || opens(&real(file)))
    }

    /// Returns the files that programs may not read.
    pub(super) fn unreadable(&self) -> Vec<PathBuf> {
        self.guarded().unreadable.clone()
    }

    fn with<T>(&self, act: impl FnOnce(&mut ProtectedPaths) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
