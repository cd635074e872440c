//! Facts about a program and its surroundings that decide which boundary can hold.

use std::path::{Component, Path, PathBuf};

use algonius_actors::decide::host::sandbox::{BoundaryFacts, BoundaryHazard};
use algonius_actors::model::agent::Access;
use algonius_actors::model::host::sandbox::{CanonicalSandboxPaths, Sandbox};
use algonius_actors::model::program::backend_program::BackendProgram;
use algonius_actors::model::program::{ProgramSpec, ProgramUser, UnixUser};
use algonius_warden::confinement::path_access::{UserIds, is_readable_by_user};
use nix::unistd::{AccessFlags, access, geteuid};

use crate::config::{ConfiguredAgent, ServiceFiles};

/// Program whose boundary is decided: what it may change, and where it works.
pub(super) struct ConfinedProgram<'a> {
    access: Access,
    sandbox: &'a Sandbox,
    /// Folders in which the program may work.
    workspaces: Vec<&'a Path>,
    home: &'a Path,
    /// Private home of the program, which is below the data directory of the service.
    private_home: Option<&'a Path>,
    /// User of the program, if it is not the user of the service.
    own_user: Option<ProgramUser>,
}

impl<'a> ConfinedProgram<'a> {
    /// Describes an agent's program.
    pub(super) fn for_agent(agent: &'a ConfiguredAgent, program: &'a ProgramSpec) -> Self {
        // Its own folder, and those that callers may choose.
        let working_dir_roots = agent.spec.override_policy.working_dir_roots.iter();
        let workspaces = std::iter::once(&program.working_dir).chain(working_dir_roots);
        let runtime = &program.runtime_settings;
        Self {
            access: agent.spec.access,
            sandbox: &program.sandbox,
            workspaces: workspaces.map(PathBuf::as_path).collect(),
            home: &runtime.home,
            private_home: runtime.agent_home.as_ref().map(|home| home.path.as_path()),
            own_user: has_own_user(program).then_some(program.user),
        }
    }

    /// Describes a backend program.
    pub(super) fn for_backend(program: &'a BackendProgram) -> Self {
        Self {
            access: BackendProgram::ACCESS,
            sandbox: &program.sandbox,
            workspaces: program.working_dir.as_deref().into_iter().collect(),
            home: &program.home,
            private_home: None,
            own_user: None,
        }
    }

    /// Inspects the folders that the program may change, the files of the service, and the existing sockets. Reads
    /// files, so it may block.
    pub(super) fn collect_boundary_facts(
        &self,
        (files, sockets): (&ServiceFiles, &[PathBuf]),
    ) -> BoundaryFacts {
        let guarded_files = GuardedFiles::new(self, files);
        let secrets = GuardedFiles::for_paths(self, files.secret_paths());
        let roots = self.writable_roots(&guarded_files);
        let allowed_sockets = &self.sandbox.allowed_sockets;
        let may_add_to = |folder: &PathBuf| self.may_add_files(folder, &roots);
        let hazards = [
            (
                BoundaryHazard::TrustedFilesInWritableFolder,
                roots.iter().any(|root| guarded_files.is_reachable_from(root)),
            ),
            (
                BoundaryHazard::SecretFilesInWritableFolder,
                roots.iter().any(|root| secrets.is_reachable_from(root)),
            ),
            (
                BoundaryHazard::ConfigurationFolder,
                files.config_folder.as_ref().is_some_and(may_add_to),
            ),
            (
                BoundaryHazard::EscapeSockets,
                sockets.iter().any(|socket| !allowed_sockets.contains(socket)),
            ),
            (
                BoundaryHazard::AllowedEscapeSockets,
                sockets.iter().any(|socket| allowed_sockets.contains(socket)),
            ),
            (
                BoundaryHazard::SecretFilesReadableByOwnUser,
                // The first list has no files below a hidden folder.
                self.can_own_user_read_any(
                    files.secret_paths().chain(files.files_with_secrets.all()),
                ),
            ),
            (
                BoundaryHazard::SharedOwnUser,
                self.own_user.is_some_and(|own_user| own_user.is_shared),
            ),
        ];
        let hazards = hazards.into_iter().filter_map(|(hazard, exists)| exists.then_some(hazard));
        BoundaryFacts { has_own_user: self.own_user.is_some(), hazards: hazards.collect() }
    }

    /// Returns true if modes permit the program's own user to read one of these files. Folders do not count, because
    /// the service removes the access of others to its own.
    fn can_own_user_read_any<'p>(&self, mut files: impl Iterator<Item = &'p Path>) -> bool {
        let Some(own_user) = self.own_user else { return false };
        let user = own_user.ids.map(|UnixUser { uid, gid }| UserIds { uid, gid });
        files.any(|file| is_readable_by_user(file, user))
    }

    /// Resolves the folders that the program may change. Reads links, so it may block.
    pub(super) fn resolve_sandbox_paths(&self, files: &ServiceFiles) -> CanonicalSandboxPaths {
        self.resolve_sandbox_paths_with(&GuardedFiles::new(self, files))
    }

    fn resolve_sandbox_paths_with(&self, guarded_files: &GuardedFiles) -> CanonicalSandboxPaths {
        let writable = self.sandbox.writable.iter().flatten();
        let writable = writable.map(|path| guarded_files.resolve_unless_guarded(path)).collect();
        let working_dirs =
            self.workspaces.iter().map(|path| guarded_files.resolve_unless_guarded(path)).collect();
        CanonicalSandboxPaths { writable, working_dirs }
    }

    /// Returns the folders that the program may change: those that the sandbox names, and its working directories. A
    /// folder that a link redirects to the service's files is not among them, because no program is started with it.
    fn writable_roots(&self, guarded_files: &GuardedFiles) -> Vec<PathBuf> {
        if !self.sandbox.restricts_writes(self.access) {
            return vec![PathBuf::from("/")];
        }
        let CanonicalSandboxPaths { writable, working_dirs } = self
            .sandbox
            .canonical_paths
            .clone()
            .unwrap_or_else(|| self.resolve_sandbox_paths_with(guarded_files));
        let writable_working_dirs = match self.access {
            Access::ReadOnly => Vec::new(),
            Access::ReadWrite => working_dirs,
        };
        let is_unredirected = |path: &PathBuf| {
            real_path(path) == *path || !guarded_files.is_reachable_from(&real_path(path))
        };
        writable.into_iter().chain(writable_working_dirs).filter(is_unredirected).collect()
    }

    /// Returns true if the program may add files to the folder of the configuration, or replace a link that leads to
    /// it. The folder is mounted read-only unless it is the working directory or the home of the program.
    fn may_add_files(&self, folder: &Path, roots: &[PathBuf]) -> bool {
        let real_folder = real_path(folder);
        if !roots.iter().any(|root| real_folder.starts_with(root)) {
            return false;
        }
        let mut used_folders = self.workspaces.iter().copied().chain([self.home]).map(real_path);
        let is_used = used_folders.any(|used_folder| used_folder.starts_with(&real_folder));
        // A program that can replace the link decides which folder the service reads.
        let is_link_replaceable = folder.ancestors().any(|ancestor| {
            let parent_of_link = ancestor.parent().filter(|_| ancestor.is_symlink());
            parent_of_link
                .is_some_and(|parent_of_link| access(parent_of_link, AccessFlags::W_OK).is_ok())
        });
        is_used || is_link_replaceable
    }
}

/// Returns true if the program runs as another user than the service.
pub(crate) fn has_own_user(program: &ProgramSpec) -> bool {
    let is_other = |user: UnixUser| user.uid != geteuid().as_raw();
    program.user.is_dynamic || program.user.ids.is_some_and(is_other)
}

/// Files of the service, as written and without links, and the home of an agent, which is below one of them.
struct GuardedFiles {
    files: Vec<PathBuf>,
    home: Option<PathBuf>,
}

impl GuardedFiles {
    fn new(program: &ConfinedProgram<'_>, files: &ServiceFiles) -> Self {
        Self::for_paths(program, files.protected_paths())
    }

    fn for_paths<'p>(program: &ConfinedProgram<'_>, paths: impl Iterator<Item = &'p Path>) -> Self {
        let files = paths.flat_map(|path| [path.to_owned(), real_path(path)]).collect();
        Self { files, home: program.private_home.map(real_path) }
    }

    /// Returns true if an agent that may change this path reaches a file of the service.
    fn is_reachable_from(&self, root: &Path) -> bool {
        let is_home = self.home.as_ref().is_some_and(|home| root.starts_with(home));
        let overlaps = |file: &PathBuf| file.starts_with(root) || root.starts_with(file);
        !is_home && self.files.iter().any(overlaps)
    }

    /// Returns the path without links. An agent may have created the link that leads to a file of the service; in that
    /// case the path stays as written, unless it leads there without the link too.
    fn resolve_unless_guarded(&self, path: &Path) -> PathBuf {
        let resolved = real_path(path);
        let is_reachable_as_written = self.is_reachable_from(&normalize_lexically(path));
        if self.is_reachable_from(&resolved) && !is_reachable_as_written {
            path.to_owned()
        } else {
            resolved
        }
    }
}

/// Returns the path without `.` and `..`, by its text alone.
fn normalize_lexically(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = normalized.pop(),
            part => normalized.push(part),
        }
    }
    normalized
}

/// Returns the path without links, as far as it exists.
fn real_path(path: &Path) -> PathBuf {
    let existing =
        path.ancestors().find_map(|ancestor| Some((ancestor, ancestor.canonicalize().ok()?)));
    let resolved = existing.and_then(|(ancestor, real_ancestor)| {
        let missing_part = path.strip_prefix(ancestor).ok()?;
        // `join` with an empty path adds a slash, and a file with a slash at its end is no folder.
        Some(if missing_part.as_os_str().is_empty() {
            real_ancestor
        } else {
            real_ancestor.join(missing_part)
        })
    });
    resolved.unwrap_or_else(|| path.to_owned())
}
