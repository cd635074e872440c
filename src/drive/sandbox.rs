//! What of the system is left to the program of an attempt: its sandbox, made of paths.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use algonius_actors::model::agent::Access;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::ProgramSpec;
use algonius_actors::ports::driver::Work;
use tokio::task::spawn_blocking;

use super::environment::Inherited;
use crate::warden::confine::{self, Confinement};

/// Where a confined program has its temporary files, in the execution's own folder.
pub(super) const TEMPORARY: &str = ".tmp";

/// The variable that names that place.
const TMPDIR: &str = "TMPDIR";

/// Said of an attempt that failed and complains of a refusal.
pub(super) const ABOUT: &str = "its error output complains of a refusal: its sandbox lets it change only its own folder, its \
     temporary folder and what `sandbox.writable` names";

/// Whether something is refused to the program. Where the system has no means, nothing is; the
/// service has said so at its start.
pub(super) fn is_confined(program: &ProgramSpec, access: Access) -> bool {
    let sandbox = &program.sandbox;
    sandbox.enforce && sandbox.refuses(access) && confine::version().is_some()
}

/// What the program may do, working in `workspace`, with this folder of its own.
pub(super) fn confinement(
    program: &ProgramSpec,
    work: &Work,
    workspace: &Path,
    own: &Path,
) -> Option<Confinement> {
    let (access, sandbox) = (work.spec.access, &program.sandbox);
    if !is_confined(program, access) {
        return None;
    }
    let mut writable = sandbox.writable.clone().unwrap_or_default();
    writable.push(own.to_owned());
    match access {
        Access::ReadOnly => {}
        Access::ReadWrite if sandbox.writable.is_some() => writable.push(workspace.to_owned()),
        Access::ReadWrite => writable = vec![PathBuf::from("/")],
    }
    Some(Confinement { writable, network: sandbox.network })
}

/// The same in the form in which the system takes it.
///
/// # Errors
/// `agent-not-started` when the system does not take it: nothing runs with less than was promised.
pub(super) async fn ruleset(confinement: Option<Confinement>) -> Result<Option<OwnedFd>, Failure> {
    let Some(confinement) = confinement else { return Ok(None) };
    let made = spawn_blocking(move || confinement.ruleset()).await;
    let made = made.map_err(io::Error::other).flatten();
    made.map(Some).map_err(|error| {
        tracing::error!(%error, "no sandbox for an execution");
        Failure::new(Code::NotStarted, "its sandbox could not be made")
    })
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
