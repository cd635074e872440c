//! Facts about an agent and its surroundings that decide which boundary can hold.

use std::path::{Component, Path, PathBuf};

use algonius_actors::decide::host::sandbox::{BoundaryFacts, Hazard};
use algonius_actors::model::agent::Access;
use algonius_actors::model::host::sandbox::SandboxRoots;
use algonius_actors::model::program::{ProgramSpec, User};
use nix::unistd::{AccessFlags, access, geteuid};

use crate::config::{Agent, ServiceFiles};

/// Inspects the folders that an agent may change, the files of the service, and the existing sockets. Reads
/// files, so it may block.
pub(super) fn collect_boundary_facts(
    agent: &Agent,
    program: &ProgramSpec,
    (files, sockets): (&ServiceFiles, &[PathBuf]),
) -> BoundaryFacts {
    let guarded = GuardedFiles::of(program, files);
    let roots = writable_roots(agent, program, &guarded);
    let allowed_sockets = &program.sandbox.sockets;
    let may_add_to = |folder: &PathBuf| may_add_files(agent, program, folder, &roots);
    let hazards = [
        (Hazard::ServiceFiles, roots.iter().any(|root| guarded.is_reachable_from(root))),
        (Hazard::ConfigurationFolder, files.config_folder.as_ref().is_some_and(may_add_to)),
        (Hazard::Sockets, sockets.iter().any(|socket| !allowed_sockets.contains(socket))),
        (Hazard::AllowedSockets, sockets.iter().any(|socket| allowed_sockets.contains(socket))),
    ];
    let hazards = hazards.into_iter().filter_map(|(hazard, exists)| exists.then_some(hazard));
    BoundaryFacts { has_own_user: has_own_user(program), hazards: hazards.collect() }
}

/// Returns true if the program runs as another user than the service.
pub(super) fn has_own_user(program: &ProgramSpec) -> bool {
    let is_other = |user: User| user.uid != geteuid().as_raw();
    program.has_dynamic_user || program.user.is_some_and(is_other)
}

/// Returns the folders that the agent may change: those that the sandbox names, and its working directories. A folder
/// that a link redirects to the service's files is not among them, because no program is started with it.
fn writable_roots(agent: &Agent, program: &ProgramSpec, guarded: &GuardedFiles) -> Vec<PathBuf> {
    let (spec, sandbox) = (&agent.spec, &program.sandbox);
    if !sandbox.guards_files(spec.access) {
        return vec![PathBuf::from("/")];
    }
    let SandboxRoots { writable, working_dirs } =
        sandbox.roots.clone().unwrap_or_else(|| resolve_sandbox_roots(agent, program, guarded));
    let writable_working_dirs = match spec.access {
        Access::ReadOnly => Vec::new(),
        Access::ReadWrite => working_dirs,
    };
    let is_resolved =
        |path: &PathBuf| real_path(path) == *path || !guarded.is_reachable_from(&real_path(path));
    writable.into_iter().chain(writable_working_dirs).filter(is_resolved).collect()
}

/// Resolves the folders that the agent may change. Reads links, so it may block.
pub(super) fn resolve_roots(
    agent: &Agent,
    program: &ProgramSpec,
    files: &ServiceFiles,
) -> SandboxRoots {
    resolve_sandbox_roots(agent, program, &GuardedFiles::of(program, files))
}

fn resolve_sandbox_roots(
    agent: &Agent,
    program: &ProgramSpec,
    guarded: &GuardedFiles,
) -> SandboxRoots {
    let writable = program.sandbox.writable.iter().flatten();
    let writable = writable.map(|path| guarded.resolve(path)).collect();
    let working_dirs =
        configured_workspaces(agent, program).map(|path| guarded.resolve(path)).collect();
    SandboxRoots { writable, working_dirs }
}

/// Returns the folders in which the agent may work: its own, and those that callers may choose.
fn configured_workspaces<'a>(
    agent: &'a Agent,
    program: &'a ProgramSpec,
) -> impl Iterator<Item = &'a Path> {
    let caller_folders = agent.spec.override_policy.folders.iter();
    std::iter::once(&program.working_dir).chain(caller_folders).map(PathBuf::as_path)
}

/// Files of the service, as written and without links, and the home of an agent, which is below one of them.
struct GuardedFiles {
    files: Vec<PathBuf>,
    home: Option<PathBuf>,
}

impl GuardedFiles {
    fn of(program: &ProgramSpec, files: &ServiceFiles) -> Self {
        let files = files.trusted().flat_map(|path| [path.to_owned(), real_path(path)]).collect();
        let home = program
            .program_runtime
            .agent_home
            .as_ref()
            .map(|agent_home| real_path(&agent_home.path));
        Self { files, home }
    }

    /// Returns true if an agent that may change this path reaches a file of the service.
    fn is_reachable_from(&self, root: &Path) -> bool {
        let is_home = self.home.as_ref().is_some_and(|home| root.starts_with(home));
        let overlaps = |file: &PathBuf| file.starts_with(root) || root.starts_with(file);
        !is_home && self.files.iter().any(overlaps)
    }

    /// Returns the path without links. An agent may have created the link that leads to a file of the service; in that
    /// case the path stays as written, unless it leads there without the link too.
    fn resolve(&self, path: &Path) -> PathBuf {
        let resolved = real_path(path);
        let is_reachable_as_written = self.is_reachable_from(&without_dots(path));
        if self.is_reachable_from(&resolved) && !is_reachable_as_written {
            path.to_owned()
        } else {
            resolved
        }
    }
}

/// Returns the path without `.` and `..`, by its text alone.
fn without_dots(path: &Path) -> PathBuf {
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

/// Returns true if the agent may add files to the folder of the configuration, or replace a link that leads to it. The
/// folder is mounted read-only unless it is the working directory or the home of the agent.
fn may_add_files(agent: &Agent, program: &ProgramSpec, folder: &Path, roots: &[PathBuf]) -> bool {
    let real_folder = real_path(folder);
    if !roots.iter().any(|root| real_folder.starts_with(root)) {
        return false;
    }
    let home = real_path(&program.program_runtime.home);
    let mut used_folders = configured_workspaces(agent, program).map(real_path).chain([home]);
    let is_used = used_folders.any(|used_folder| used_folder.starts_with(&real_folder));
    // An agent that can replace the link decides which folder the service reads.
    let is_link_replaceable = folder.ancestors().any(|ancestor| {
        let parent_of_link = ancestor.parent().filter(|_| ancestor.is_symlink());
        parent_of_link
            .is_some_and(|parent_of_link| access(parent_of_link, AccessFlags::W_OK).is_ok())
    });
    is_used || is_link_replaceable
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
