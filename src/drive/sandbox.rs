//! What of the system is left to the program of an attempt: its sandbox, made of paths.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use algonius_actors::decide::contract::spawn_failure;
use algonius_actors::model::agent::Access;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::ProgramSpec;
use algonius_actors::model::sandbox::{Isolation, Sandbox};
use algonius_actors::ports::driver::Work;
use nix::unistd::{AccessFlags, access};
use tokio::task::spawn_blocking;

use super::environment::Inherited;
use super::process::Site;
use crate::warden::Launch;
use crate::warden::confine::Confinement;
use crate::warden::wrap::{View, ViewError};

/// Where a confined program has its temporary files, in the execution's own folder.
pub(super) const TEMPORARY: &str = ".tmp";

/// The variable that names that place.
const TMPDIR: &str = "TMPDIR";

/// Said of an attempt that failed and complains of a refusal.
pub(super) const ABOUT: &str = "its error output complains of a refusal: its sandbox lets it change only its own folder, its \
     temporary folder and what `sandbox.writable` names, and nothing that `sandbox.protected` names";

/// How the program of an attempt is held.
pub(super) enum Hold {
    /// It is not.
    Free,
    /// By the kernel, with these rights left.
    Ruleset(Confinement),
    /// In a view of its own, by a bubblewrap at this place.
    View(View, PathBuf),
}

impl Hold {
    /// Whether it names only what is found at once: the root, and folders of executions.
    pub(super) fn is_at_hand(&self, site: &Site) -> bool {
        let is_here = |path: &PathBuf| path == "/" || path.starts_with(&site.runtime_dir);
        match self {
            Self::Free => true,
            Self::Ruleset(confinement) => confinement.writable.iter().all(is_here),
            Self::View(..) => false,
        }
    }
}

/// Whether something is refused to the program. Where the system has no means, nothing is; the
/// service has said so at its start.
pub(super) fn is_confined(work: &Work) -> bool {
    work.spec.isolation.is_some()
}

/// How the program is held, working in `workspace`, with this folder of its own.
///
/// # Errors
/// `agent-not-started` when the means is gone that was there when the service started.
pub(super) fn hold(
    program: &ProgramSpec,
    site: &Site,
    work: &Work,
    (workspace, own): (&Path, &Path),
) -> Result<Hold, Failure> {
    let Some(isolation) = work.spec.isolation else { return Ok(Hold::Free) };
    let (access, sandbox) = (work.spec.access, &program.sandbox);
    let mut confinement = confinement(access, sandbox, workspace, own);
    confinement.writable.extend(program.outfit.own.as_ref().map(|home| home.path.clone()));
    if isolation == Isolation::Landlock {
        return Ok(Hold::Ruleset(confinement));
    }
    let view = View {
        confinement,
        workspace: workspace.to_owned(),
        changes_workspace: access == Access::ReadWrite,
        hidden: sandbox.hidden.clone(),
        private: vec![site.data_dir.clone(), site.runtime_dir.clone()],
        protected: sandbox.protected.clone(),
    };
    let bubblewrap = site.bubblewrap.clone().ok_or_else(unmade)?;
    Ok(Hold::View(view, bubblewrap))
}

/// Of what a program is to see nothing, and nobody by way of it.
pub(super) fn hidden(program: &ProgramSpec, site: &Site) -> Vec<PathBuf> {
    let private = [site.data_dir.clone(), site.runtime_dir.clone()];
    private.into_iter().chain(program.sandbox.hidden.iter().cloned()).collect()
}

/// What the program may change and reach.
fn confinement(access: Access, sandbox: &Sandbox, workspace: &Path, own: &Path) -> Confinement {
    let mut writable = sandbox.writable.clone().unwrap_or_default();
    writable.push(own.to_owned());
    match access {
        Access::ReadOnly => {}
        Access::ReadWrite if sandbox.writable.is_some() => writable.push(workspace.to_owned()),
        Access::ReadWrite => writable.push(PathBuf::from("/")),
    }
    Confinement { writable, network: sandbox.network }
}

/// Gives it to a launch in the form in which the system takes it. It looks at files.
///
/// # Errors
/// `agent-not-started` when the system does not take it: nothing runs with less than was promised.
pub(super) fn give(hold: Hold, mut launch: Launch) -> Result<Launch, Failure> {
    match hold {
        Hold::Free => {}
        Hold::Ruleset(confinement) => {
            launch.ruleset = Some(confinement.ruleset().map_err(|error| refused(&error.into()))?);
        }
        Hold::View(view, bubblewrap) => {
            // Its wrapper could only say in words that it is not there.
            executable(&launch.program)?;
            let wrapper = view.wrapper(&bubblewrap, &launch.program);
            launch.wrapper = Some(wrapper.map_err(|error| refused(&error))?);
        }
    }
    Ok(launch)
}

/// The same, beside the work of others.
///
/// # Errors
/// As there.
pub(super) async fn give_apart(hold: Hold, launch: Launch) -> Result<Launch, Failure> {
    let given = spawn_blocking(move || give(hold, launch)).await;
    given.unwrap_or_else(|error| Err(refused(&io::Error::other(error).into())))
}

fn executable(program: &Path) -> Result<(), Failure> {
    access(program, AccessFlags::X_OK).map_err(|errno| spawn_failure(errno as i32))
}

fn refused(error: &ViewError) -> Failure {
    let (ViewError::Missing { path } | ViewError::Replaceable { path }) = error else {
        tracing::error!(%error, "no sandbox for an execution");
        return match error {
            ViewError::Blind => Failure::new(Code::NotStarted, error.to_string()),
            _ => unmade(),
        };
    };
    tracing::error!(%error, path = %path.display(), "no sandbox for an execution");
    Failure::new(Code::NotStarted, error.to_string())
}

/// The failure of a program whose sandbox could not be made.
pub(super) fn unmade() -> Failure {
    Failure::new(Code::NotStarted, "its sandbox could not be made")
}

/// Names the place for temporary files, unless the configuration or the caller has named another.
pub(super) fn give_temporary(
    env: &mut BTreeMap<OsString, OsString>,
    program: &ProgramSpec,
    inherited: &Inherited,
    own: &Path,
) {
    let is_inherited = env.get(&OsString::from(TMPDIR)) == inherited.get(&OsString::from(TMPDIR));
    if is_inherited && !program.env.contains_key(TMPDIR) {
        env.insert(TMPDIR.into(), own.join(TEMPORARY).into());
    }
}
