//! Files of the service, which programs may neither read nor change: shared by all agents, and replaced when
//! the configuration is read again.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use algonius_warden::confinement::bubblewrap::ProtectedServiceFiles;
use algonius_warden::confinement::landlock::{AllowList, ReadablePaths};

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
    service_files: Arc<ProtectedServiceFiles>,
    allow_list: AllowList,
}

impl ServicePaths {
    /// Returns the files that programs may not read, and those that they may not change. Lists folders, so it may
    /// block.
    #[must_use]
    pub fn new(service_files: ProtectedServiceFiles) -> Self {
        let paths = Self::default();
        paths.set(service_files);
        paths
    }

    /// Replaces the files. A running program keeps those of its start. May block.
    pub fn set(&self, service_files: ProtectedServiceFiles) {
        let allow_list = AllowList::new(service_files.unreadable.clone());
        self.with_paths(|paths| {
            *paths = ProtectedPaths { service_files: Arc::new(service_files), allow_list }
        });
    }

    /// Returns the files.
    pub(super) fn service_files(&self) -> Arc<ProtectedServiceFiles> {
        self.with_paths(|paths| Arc::clone(&paths.service_files))
    }

    /// Returns everything that a program may read, if the list is current without listing a folder.
    pub(super) fn cached_readable(&self) -> Option<Arc<ReadablePaths>> {
        self.with_paths(|paths| paths.allow_list.cached())
    }

    /// Returns everything that a program may read. Lists folders again if one has changed, so it may block.
    pub(super) fn readable(&self) -> Arc<ReadablePaths> {
        self.with_paths(|paths| paths.allow_list.current())
    }

    /// Returns true if a path is one of the files that programs may not read, or is below one.
    pub(super) fn is_unreadable(&self, path: &Path) -> bool {
        self.service_files().unreadable.iter().any(|hidden| path.starts_with(hidden))
    }

    /// Returns true if a program that may change this folder would reach a file that programs may not change.
    pub(super) fn is_exposed_by(&self, folder: &Path) -> bool {
        let service_files = self.service_files();
        let overlaps = |file: &PathBuf| file.starts_with(folder) || folder.starts_with(file);
        // A file of the service may be a link, and whoever changes the folder of its target changes the file.
        let real_path =
            |file: &PathBuf| file.canonicalize().unwrap_or_else(|_missing| file.clone());
        let mut files = service_files.unreadable.iter().chain(&service_files.unwritable);
        files.any(|file| overlaps(file) || overlaps(&real_path(file)))
    }

    /// Returns the files that programs may not read.
    pub(super) fn unreadable(&self) -> Vec<PathBuf> {
        self.service_files().unreadable.clone()
    }

    fn with_paths<T>(&self, operation: impl FnOnce(&mut ProtectedPaths) -> T) -> T {
        operation(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
