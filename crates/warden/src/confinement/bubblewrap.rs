//! View of a program on the system, as arguments of bubblewrap, which creates mount and process namespaces.

mod layers;
mod probe;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

use self::layers::Layers;
pub use self::probe::is_transient_error;
pub(crate) use self::probe::is_usable;
use super::root_capabilities::NAMESPACE_CAPABILITIES;
use super::service_folders::ProtectedServiceFiles;

/// Without this capability the kernel refuses root a user namespace in which it is root too, and bubblewrap creates
/// such a namespace. Mounts that a new namespace inherits stay locked, so no hidden file appears in it.
const NESTED_SANDBOX_CAPABILITY: &str = "CAP_SETFCAP";

/// Part of the system that a program sees, and the part that it may change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FilesystemView {
    /// Files, and folders with their contents, that the program may change, as paths without links. A path that does
    /// not exist is skipped. A program that may change `/` has the devices too, unless it runs as root.
    pub writable_paths: Vec<PathBuf>,
    /// Folders that the service has created for the program, which it may change too.
    pub private_folders: Vec<PathBuf>,
    /// True if the program shares the network of the machine.
    pub shares_network: bool,
    /// Home of the program, which it may change if it may change the parent folder.
    pub home: PathBuf,
    /// Working directory. The program sees it even if its parent is hidden.
    pub workspace: PathBuf,
    /// Folders, without links, in which the configured working directories are; empty if that is not known.
    pub workspace_roots: Vec<PathBuf>,
    /// True if the program may change the working directory in that case.
    pub is_workspace_writable: bool,
    /// True if the program creates sandboxes itself.
    pub creates_sandboxes: bool,
    /// Folders and files that appear empty to the program.
    pub hidden_paths: Vec<PathBuf>,
    /// Empty file that replaces each hidden file.
    pub empty_file: PathBuf,
    /// Files of the service.
    pub service_files: ProtectedServiceFiles,
    /// Paths that the program may not change, although it may change their parents; relative to the workspace.
    pub protected_paths: Vec<PathBuf>,
}

/// Program that starts another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrapperCommand {
    /// Absolute path of the wrapper.
    pub program: PathBuf,
    /// Arguments of the wrapper up to the other program.
    pub args: Vec<OsString>,
}

/// Reason why a view cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// A missing path can be neither hidden nor protected from later creation.
    #[error("a path that is to be hidden or protected is not there")]
    Missing {
        /// Missing path.
        path: PathBuf,
    },
    /// An agent that may change a link can change its target.
    #[error("a path that is to be protected leads through a link that the agent may change")]
    MutableLink {
        /// Path of the link.
        path: PathBuf,
    },
    /// An agent replaced a folder, or a parent of it, with a link.
    #[error("a path that the agent may change was replaced by a link")]
    ReplacedByLink {
        /// Configured path.
        path: PathBuf,
    },
    /// A link leads to a folder of the service, because the configuration names no such folder.
    #[error("the working directory belongs to the service")]
    ServiceFolder,
    /// The program would start in an empty folder.
    #[error("its working folder is hidden from it")]
    HiddenWorkspace,
    /// The system did not report the state of a path.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl FilesystemView {
    /// Returns the wrapper that creates this view for a program. Reads file metadata, so it may take some time.
    ///
    /// # Errors
    /// Fails if a path is not as required, or cannot be read.
    pub fn build_wrapper_command(
        &self,
        bubblewrap: &Path,
        program: &Path,
    ) -> Result<WrapperCommand, ViewError> {
        let (workspace, program) = (self.workspace.canonicalize()?, program.canonicalize()?);
        let layers = Layers::for_view(self, &workspace, &program)?;
        let mut args = layers.bubblewrap_arguments(&self.empty_file);
        args.extend(["--unshare-pid", "--unshare-ipc", "--die-with-parent"].map(Into::into));
        if !self.shares_network {
            args.push("--unshare-net".into());
        }
        if geteuid().is_root() {
            args.extend(["--cap-drop", "ALL"].map(Into::into));
            let nesting_capability = self.creates_sandboxes.then_some(NESTED_SANDBOX_CAPABILITY);
            let retained =
                NAMESPACE_CAPABILITIES.iter().map(|(name, _)| *name).chain(nesting_capability);
            args.extend(retained.flat_map(|name| ["--cap-add".into(), name.into()]));
        }
        args.extend(["--chdir".into(), workspace.into()]);
        Ok(WrapperCommand { program: bubblewrap.to_owned(), args })
    }
}

#[cfg(test)]
mod tests;
