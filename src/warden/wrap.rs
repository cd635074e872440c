//! What a program sees of the system, as the arguments of bubblewrap, which gives it mounts and
//! processes of its own.

mod layers;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::unistd::geteuid;

use self::layers::Layers;
use super::confine::Confinement;

/// What a program sees, and what of it it may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// What it may change and reach. One that may change `/` has the devices too.
    pub confinement: Confinement,
    /// Where it starts. It sees this even where what is around it is hidden.
    pub workspace: PathBuf,
    /// Whether it may change that then.
    pub changes_workspace: bool,
    /// Folders and files that are empty to it.
    pub hidden: Vec<PathBuf>,
    /// The service's own folders: hidden too, unless it works in one or its program is in one.
    pub private: Vec<PathBuf>,
    /// What it may not change, although it may change what is around; relative to the workspace.
    pub protected: Vec<PathBuf>,
}

/// A program that starts another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapper {
    /// Absolute path.
    pub program: PathBuf,
    /// Its arguments up to the other program.
    pub args: Vec<OsString>,
}

/// Why a view cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// What is not there can be neither hidden nor protected from what is made there later.
    #[error("a path that is to be hidden or protected is not there")]
    Missing {
        /// Which.
        path: PathBuf,
    },
    /// Whoever may change a link leads it elsewhere.
    #[error("a path that is to be protected leads through a link that the agent may change")]
    Replaceable {
        /// The link.
        path: PathBuf,
    },
    /// It would start in an empty folder.
    #[error("its working folder is hidden from it")]
    Blind,
    /// The system did not tell what is where.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Rights that a program of root keeps: to work with the files and processes of other users. None
/// of them moves a mount or opens a file past one.
const RIGHTS: [&str; 8] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_NET_BIND_SERVICE",
    "CAP_SETGID",
    "CAP_SETUID",
];

impl View {
    /// What gives this view to a program. Looks at files, so it may take some time.
    ///
    /// # Errors
    /// When a path is not as it must be, or cannot be looked at.
    pub fn wrapper(&self, bubblewrap: &Path, program: &Path) -> Result<Wrapper, ViewError> {
        let (workspace, program) = (self.workspace.canonicalize()?, program.canonicalize()?);
        let private = self.private.iter().filter_map(|folder| folder.canonicalize().ok());
        let private = private.filter(|it| *it != workspace && !program.starts_with(it));
        let layers = Layers::of(self, &workspace, private.collect())?;
        let mut args = layers.arguments();
        args.extend(["--unshare-pid", "--unshare-ipc", "--die-with-parent"].map(Into::into));
        if !self.confinement.network {
            args.push("--unshare-net".into());
        }
        if geteuid().is_root() {
            args.extend(["--cap-drop", "ALL"].map(Into::into));
            args.extend(RIGHTS.into_iter().flat_map(|right| ["--cap-add".into(), right.into()]));
        }
        args.extend(["--chdir".into(), workspace.into()]);
        Ok(Wrapper { program: bubblewrap.to_owned(), args })
    }
}

/// Whether bubblewrap gives programs here all that they may be wrapped in.
pub(super) fn works(bubblewrap: &Path) -> bool {
    let view = View {
        confinement: Confinement { writable: Vec::new(), network: false },
        workspace: PathBuf::from("/"),
        changes_workspace: false,
        hidden: Vec::new(),
        private: Vec::new(),
        protected: Vec::new(),
    };
    let Ok(Wrapper { program, args }) = view.wrapper(bubblewrap, bubblewrap) else { return false };
    let mut command = Command::new(program);
    // Without a process of bubblewrap's own between the two, which would end after it, an orphan of ours.
    command.args(args).args(["--as-pid-1", "--", "true"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests;
