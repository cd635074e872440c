//! Mounts of a view.
//!
//! The longest matching path counts, so layers are mounted from the root downwards. A folder that could be moved
//! together with a mount inside is bind-mounted on itself, because a mount point cannot be moved.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::geteuid;

use super::{FilesystemView, ViewError};
use crate::confinement::service_folders::{ProtectedServiceFiles, UsedFolders};

/// Greatest number of links that are followed, as in the kernel.
const MAX_LINKS: u32 = 40;

/// Devices that a program of root keeps when it may change everything: none of them gives access to files.
const HARMLESS_DEVICES: [&str; 5] = ["/dev/dri", "/dev/fuse", "/dev/kvm", "/dev/net", "/dev/shm"];

/// Treatment of a path, and of everything below it without a layer of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layer {
    Writable,
    ReadOnly,
    Hidden,
    /// Devices without stored data, and private terminals.
    Devices,
    /// Process information of the program's own processes.
    Processes,
}

/// Layers by their paths, without links; `/` is among them.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::confinement::bubblewrap) struct Layers(BTreeMap<PathBuf, Layer>);

impl Layers {
    /// Returns the layers of a view, for a program that works in `workspace`; both paths are without links.
    ///
    /// # Errors
    /// Fails if a path is not as required, or cannot be read.
    pub(in crate::confinement::bubblewrap) fn for_view(
        view: &FilesystemView,
        workspace: &Path,
        program: &Path,
    ) -> Result<Self, ViewError> {
        let mut layers = Self::from_writable_paths(view)?;
        check_workspace(view, workspace)?;
        let hidden = view.hidden_paths.iter().map(|path| canonical_path(path));
        let mut hidden = hidden.collect::<Result<Vec<_>, _>>()?;
        hidden.extend(existing_paths(&view.service_files.hidden_paths));
        let folders = view.service_files.coverable_folders(&used_folders(view, workspace, program));
        // An empty file would show its name.
        hidden.retain(|path| !folders.iter().any(|folder| path.starts_with(folder)));
        hidden.extend(folders);
        hidden.sort();
        for path in hidden {
            layers.cover_path(path, Layer::Hidden)?;
        }
        layers.unhide_workspace(workspace, view.is_workspace_writable)?;
        layers.unhide_program(program);
        let protected =
            view.protected_paths.iter().map(|path| layers.resolve_protected(workspace.join(path)));
        let mut read_only = protected.collect::<Result<Vec<_>, _>>()?;
        read_only.extend(existing_paths(&view.service_files.read_only_paths));
        // A program needs to change its working directory and its home, whatever else they contain.
        let home = view.home.canonicalize().unwrap_or_default();
        let contains_workspace_or_home =
            |path: &PathBuf| workspace.starts_with(path) || home.starts_with(path);
        let config_folder =
            view.service_files.config_folder.as_ref().and_then(|folder| folder.canonicalize().ok());
        read_only.extend(config_folder.filter(|folder| !contains_workspace_or_home(folder)));
        read_only.sort();
        for path in read_only {
            layers.cover_path(path, Layer::ReadOnly)?;
        }
        Ok(layers)
    }

    /// Shows the working directory if its parent is hidden.
    fn unhide_workspace(&mut self, workspace: &Path, is_writable: bool) -> Result<(), ViewError> {
        if self.0.get(workspace) == Some(&Layer::Hidden) {
            return Err(ViewError::HiddenWorkspace);
        }
        if matches!(self.layer_of(workspace), Layer::Hidden | Layer::Devices) {
            let layer = if is_writable { Layer::Writable } else { Layer::ReadOnly };
            self.0.insert(workspace.to_owned(), layer);
        }
        Ok(())
    }

    /// Shows the program if its parent is hidden, with the files beside it unless these are hidden themselves.
    fn unhide_program(&mut self, program: &Path) {
        if self.layer_of(program) != Layer::Hidden {
            return;
        }
        let parent_folder = program.parent().filter(|folder| !self.0.contains_key(*folder));
        self.0.insert(parent_folder.unwrap_or(program).to_owned(), Layer::ReadOnly);
    }

    /// Returns the writable paths on top of the read-only root. Missing paths are skipped.
    fn from_writable_paths(view: &FilesystemView) -> Result<Self, ViewError> {
        let mut layers = BTreeMap::from([("/proc".into(), Layer::Processes)]);
        for path in view.writable_paths.iter().chain(&view.private_folders) {
            match path.canonicalize() {
                Ok(canonical) if canonical != *path && view.writable_paths.contains(path) => {
                    return Err(ViewError::ReplacedByLink { path: path.clone() });
                }
                Ok(canonical) => _ = layers.insert(canonical, Layer::Writable),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        if !layers.contains_key(Path::new("/")) {
            layers.insert("/".into(), Layer::ReadOnly);
            layers.entry("/dev".into()).or_insert(Layer::Devices);
        } else if geteuid().is_root() {
            // Through a disk's own device, root could read and change every file that is hidden here.
            layers.entry("/dev".into()).or_insert(Layer::Devices);
            layers.extend(
                existing_paths(HARMLESS_DEVICES.map(PathBuf::from).as_slice())
                    .map(|it| (it, Layer::Writable)),
            );
        }
        Ok(Self(layers))
    }

    /// Returns the layer that contains a path.
    fn layer_of(&self, path: &Path) -> Layer {
        let found = path.ancestors().find_map(|ancestor| self.0.get(ancestor));
        found.copied().unwrap_or(Layer::ReadOnly)
    }

    /// Adds a layer if it has an effect, and mounts its writable parents so that the path cannot be moved away. Parents
    /// come before their children.
    fn cover_path(&mut self, path: PathBuf, layer: Layer) -> Result<(), ViewError> {
        let may_change = |path: &&Path| self.layer_of(path) == Layer::Writable;
        let writable_ancestors: Vec<_> =
            path.ancestors().skip(1).filter(may_change).map(Path::to_owned).collect();
        match (self.layer_of(&path), layer) {
            // Also within a hidden path: the workspace may lie between the two.
            (_, Layer::Hidden) | (Layer::Writable, _) => {
                self.0.extend(
                    writable_ancestors.into_iter().map(|ancestor| (ancestor, Layer::Writable)),
                );
                self.0.insert(path, layer);
            }
            (Layer::Processes, _) => return Err(ViewError::Missing { path }),
            // The path is not writable there anyway.
            _ => {}
        }
        Ok(())
    }

    /// Resolves a path to be protected, and refuses links that the program could change.
    fn resolve_protected(&self, mut path: PathBuf) -> Result<PathBuf, ViewError> {
        for _ in 0..MAX_LINKS {
            let links = path.ancestors().filter(|ancestor| ancestor.is_symlink());
            let Some(link) = links.last() else { return canonical_path(&path) };
            let folder = link.parent().unwrap_or(Path::new("/")).canonicalize()?;
            if self.layer_of(&folder) == Layer::Writable {
                return Err(ViewError::MutableLink { path: link.to_owned() });
            }
            let rest = path.strip_prefix(link).unwrap_or(Path::new(""));
            path = folder.join(link.read_link()?).join(rest);
        }
        Err(io::Error::from(Errno::ELOOP).into())
    }

    /// Returns true if a path is hidden or read-only, or is in a folder that is.
    fn is_covered(&self, path: &Path) -> bool {
        let ancestors = path.ancestors().filter(|ancestor| *ancestor != Path::new("/"));
        let mut layers = ancestors.filter_map(|ancestor| self.0.get(ancestor));
        layers.any(|layer| matches!(layer, Layer::Hidden | Layer::ReadOnly))
    }

    /// Returns the arguments of bubblewrap. A hidden file reads as the file `empty_file`: its mount is read-only, so
    /// that its mode cannot be changed either. (A device such as `/dev/null` would be the machine's own.)
    pub(in crate::confinement::bubblewrap) fn bubblewrap_arguments(
        &self,
        empty_file: &Path,
    ) -> Vec<OsString> {
        let has_host_devices = self.0.get(Path::new("/")) == Some(&Layer::Writable)
            && self.0.get(Path::new("/dev")) != Some(&Layer::Devices);
        let mut args = Vec::new();
        // Bubblewrap follows links. If an agent replaces a writable folder now, another folder is mounted, and hidden
        // or protected paths cover it only if they are mounted later.
        let (covered, uncovered): (Vec<_>, Vec<_>) =
            self.0.iter().partition(|(path, _)| self.is_covered(path));
        for (path, layer) in uncovered.into_iter().chain(covered) {
            let is_device = has_host_devices || path.starts_with("/dev");
            let options: &[&str] = match layer {
                Layer::Writable if is_device => &["--dev-bind"],
                Layer::Writable => &["--bind"],
                Layer::ReadOnly => &["--ro-bind"],
                Layer::Hidden if path.is_dir() => &["--tmpfs"],
                Layer::Hidden => &["--ro-bind"],
                Layer::Devices => &["--dev"],
                Layer::Processes => &["--proc"],
            };
            args.extend(options.iter().map(OsString::from));
            match layer {
                Layer::Writable | Layer::ReadOnly => args.push(path.into()),
                Layer::Hidden if !path.is_dir() => args.push(empty_file.into()),
                Layer::Hidden | Layer::Devices | Layer::Processes => {}
            }
            args.push(path.into());
        }
        // Remounted last, after all mounts inside exist.
        let hidden =
            self.0.iter().filter(|(path, layer)| **layer == Layer::Hidden && path.is_dir());
        args.extend(hidden.flat_map(|(path, _)| ["--remount-ro".into(), path.into()]));
        args
    }
}

/// Refuses a working directory of the service, which would be shown even if its parent is hidden; and a parent of the
/// service's files, if only a link leads there.
fn check_workspace(view: &FilesystemView, workspace: &Path) -> Result<(), ViewError> {
    let is_below =
        |paths: &[PathBuf]| existing_paths(paths).any(|path| workspace.starts_with(path));
    let is_above =
        |paths: &[PathBuf]| existing_paths(paths).any(|path| path.starts_with(workspace));
    let ProtectedServiceFiles { hidden_paths: hidden, read_only_paths: read_only, .. } =
        &view.service_files;
    // Not resolved again: an agent may have put a link there meanwhile.
    let leads_outside_roots = !view.workspace_roots.is_empty()
        && !view.workspace_roots.iter().any(|root| workspace.starts_with(root));
    let overlaps_service_files = is_above(hidden) || is_above(read_only) || is_below(read_only);
    match (is_below(hidden) || leads_outside_roots && overlaps_service_files)
        && !is_below(&view.private_folders)
    {
        true => Err(ViewError::ServiceFolder),
        false => Ok(()),
    }
}

/// Returns the folders that a program uses.
fn used_folders(view: &FilesystemView, workspace: &Path, program: &Path) -> UsedFolders {
    // A private folder is mounted over a hidden one.
    let is_private = |path: &PathBuf| view.private_folders.iter().any(|it| path.starts_with(it));
    let other_paths = view.writable_paths.iter().chain([&view.home]);
    let other_paths = other_paths.filter(|path| !is_private(path)).cloned();
    UsedFolders {
        workspaces: vec![workspace.to_owned()],
        other_paths: other_paths.chain([program.to_owned()]).collect(),
    }
}

fn canonical_path(path: &Path) -> Result<PathBuf, ViewError> {
    path.canonicalize().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            ViewError::Missing { path: path.to_owned() }
        }
        _ => error.into(),
    })
}

/// Returns the existing paths, without links.
fn existing_paths(paths: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    paths.iter().filter_map(|path| path.canonicalize().ok())
}
