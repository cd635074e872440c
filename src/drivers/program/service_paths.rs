//! Files of the service, which programs may neither read nor change: shared by all agents, and replaced when
//! the configuration is read again.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use algonius_actors::model::host::sandbox::{Sandbox, SharedMemoryAccess};
use algonius_warden::confinement::landlock::{AllowList, ReadablePaths};
use algonius_warden::confinement::service_folders::ProtectedServiceFiles;

/// Folder of the memory that programs share by name: semaphores and segments of POSIX. Python's `multiprocessing` and
/// databases need it for their own processes.
const SHARED_MEMORY_FOLDER: &str = "/dev/shm";

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
    /// Folder of shared memory without links, if no file of the service is in it.
    shared_memory_folder: Option<PathBuf>,
}

impl ServicePaths {
    /// Returns the files that programs may not read, and those that they may not change. Lists folders, so it may
    /// block.
    #[must_use]
    pub fn new(service_files: ProtectedServiceFiles) -> Self {
        let paths = Self::default();
        paths.replace_service_files(service_files);
        paths
    }

    /// Replaces the files. A running program keeps those of its start. May block.
    pub fn replace_service_files(&self, service_files: ProtectedServiceFiles) {
        let allow_list = AllowList::new(service_files.hidden_paths.clone());
        let shared_memory =
            find_shared_memory_folder(Path::new(SHARED_MEMORY_FOLDER), &service_files);
        let service_files = Arc::new(service_files);
        self.run_with_lock(|paths| {
            *paths =
                ProtectedPaths { service_files, allow_list, shared_memory_folder: shared_memory }
        });
    }

    /// Returns the files.
    pub(super) fn service_files(&self) -> Arc<ProtectedServiceFiles> {
        self.run_with_lock(|paths| Arc::clone(&paths.service_files))
    }

    /// Returns everything that a program may read, if the list is current without listing a folder.
    pub(super) fn cached_readable_paths(&self) -> Option<Arc<ReadablePaths>> {
        self.run_with_lock(|paths| paths.allow_list.paths_if_current())
    }

    /// Returns everything that a program may read. Lists folders again if one has changed, so it may block.
    pub(super) fn readable_paths(&self) -> Arc<ReadablePaths> {
        self.run_with_lock(|paths| paths.allow_list.refresh_paths())
    }

    /// Returns the folder of shared memory without links, if a program with this sandbox may change it: neither a file
    /// of the service nor a working folder of the program is in it, because a read-only agent must not change that.
    pub(super) fn shared_memory_folder(
        &self,
        sandbox: &Sandbox,
        workspace: &Path,
    ) -> Option<PathBuf> {
        if sandbox.shared_memory == SharedMemoryAccess::Refused {
            return None;
        }
        let folder = self.run_with_lock(|paths| paths.shared_memory_folder.clone())?;
        let roots = sandbox.canonical_paths.iter().flat_map(|roots| &roots.working_dirs);
        let mut working_dirs = roots.map(PathBuf::as_path).chain([workspace]);
        (!working_dirs.any(|path| path.starts_with(&folder))).then_some(folder)
    }

    /// Returns true if a path is one of the files that programs may not read, or is below one.
    pub(super) fn is_hidden_from_programs(&self, path: &Path) -> bool {
        self.service_files().hidden_paths.iter().any(|hidden| path.starts_with(hidden))
    }

    /// Returns true if a program that may change this folder would reach a file that programs may not change.
    pub(super) fn is_exposed_by(&self, folder: &Path) -> bool {
        exposes_service_files(&self.service_files(), folder)
    }

    /// Returns the files that programs may not read.
    pub(super) fn hidden_paths(&self) -> Vec<PathBuf> {
        self.service_files().hidden_paths.clone()
    }

    fn run_with_lock<T>(&self, operation: impl FnOnce(&mut ProtectedPaths) -> T) -> T {
        operation(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the path of the folder without links, unless a file of the service is in it: a rule applies to everything
/// below a folder, without exceptions.
fn find_shared_memory_folder(
    folder: &Path,
    service_files: &ProtectedServiceFiles,
) -> Option<PathBuf> {
    let real_path = folder.canonicalize().ok()?;
    // A file that does not exist yet has no real path, so the path as it is written counts too.
    let is_exposed = exposes_service_files(service_files, folder)
        || exposes_service_files(service_files, &real_path);
    (!is_exposed).then_some(real_path)
}

/// Returns true if a program that may change this folder would reach a file that programs may not change.
fn exposes_service_files(service_files: &ProtectedServiceFiles, folder: &Path) -> bool {
    let overlaps = |file: &PathBuf| file.starts_with(folder) || folder.starts_with(file);
    // A file of the service may be a link, and a change of the folder of its target changes the file.
    let real_path = |file: &PathBuf| file.canonicalize().unwrap_or_else(|_missing| file.clone());
    let mut files = service_files.hidden_paths.iter().chain(&service_files.read_only_paths);
    files.any(|file| overlaps(file) || overlaps(&real_path(file)))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn shared_memory_with_a_file_of_the_service_is_not_granted() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let [real, link, elsewhere] = ["real", "link", "elsewhere"].map(|name| root.join(name));
        fs::create_dir_all(real.join("service")).unwrap();
        fs::create_dir(&elsewhere).unwrap();
        symlink(&real, &link).unwrap();
        symlink(real.join("service"), elsewhere.join("data")).unwrap();
        let with_hidden = |path: PathBuf| ProtectedServiceFiles {
            hidden_paths: vec![path],
            ..ProtectedServiceFiles::default()
        };
        let granted = |files: &ProtectedServiceFiles| {
            [&real, &link].map(|folder| find_shared_memory_folder(folder, files))
        };
        let all = [Some(real.clone()), Some(real.clone())];
        assert_eq!(granted(&with_hidden(elsewhere.join("other"))), all);
        assert_eq!(granted(&with_hidden(real.join("service"))), [None, None]);
        assert_eq!(granted(&with_hidden(link.join("service"))), [None, None]);
        // Not there yet, and named by the link or the folder.
        assert_eq!(granted(&with_hidden(real.join("later"))), [None, None]);
        assert_eq!(find_shared_memory_folder(&link, &with_hidden(link.join("later"))), None);
        assert_eq!(granted(&with_hidden(elsewhere.join("data"))), [None, None]);
        let unwritable = ProtectedServiceFiles {
            read_only_paths: vec![real.join("service")],
            ..ProtectedServiceFiles::default()
        };
        assert_eq!(granted(&unwritable), [None, None]);
        assert_eq!(find_shared_memory_folder(&root.join("missing"), &unwritable), None);
    }
}
