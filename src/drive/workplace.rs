//! The folder in which an attempt starts, and what of it nobody else may change meanwhile.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use algonius_actors::model::agent::{Access, AgentSpec, Allowance};
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::ProgramSpec;
use algonius_actors::model::request::Request;
use algonius_actors::model::workspace::Workspace;
use algonius_actors::ports::driver::Work;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// A folder that takes longer to be looked at stands on a broken mount. The start has a deadline
/// of its own.
const PATIENCE: Duration = Duration::from_secs(10);

/// The folder that an agent which changes things would work in now: the one that its caller chose
/// or its own, without links. One that cannot be found stays as written; the start is refused then.
pub(super) async fn workspace(
    program: &ProgramSpec,
    spec: &AgentSpec,
    request: &Request,
) -> Option<Workspace> {
    if spec.access == Access::ReadOnly {
        return None;
    }
    let chosen = request.overrides().working_dir.map(PathBuf::from);
    let written = chosen.unwrap_or_else(|| program.working_dir.clone());
    let place = written.clone();
    let found = timeout(PATIENCE, spawn_blocking(move || place.canonicalize())).await;
    let found = found.ok().and_then(Result::ok).and_then(Result::ok);
    Some(Workspace::new(found.unwrap_or(written)))
}

/// The agent's own folder, or the one that its caller chose, without a link in its path. A link may
/// lead out of what is allowed, so where the path really leads is what counts. What was claimed is
/// where the work goes, whatever has become of the links that led there.
///
/// # Errors
/// `override-refused`, and `agent-not-started` when the agent's own folder was replaced since it
/// was claimed.
pub(super) async fn workplace(program: &ProgramSpec, work: &Work) -> Result<PathBuf, Failure> {
    let claimed = work.workspace.as_ref().map(|workspace| workspace.path().to_owned());
    let Some(chosen) = work.request.overrides().working_dir else {
        return own(program, claimed).await;
    };
    let allowance = work.spec.allowance.clone();
    let written = claimed.clone().unwrap_or_else(|| chosen.into());
    let found = spawn_blocking(move || found(&allowance, &written)).await;
    match found.map_err(io::Error::other).flatten() {
        Ok(Some(folder)) if claimed.is_none_or(|claimed| claimed == folder) => Ok(folder),
        Ok(_) => Err(refused("the working directory leads out of what the agent allows")),
        Err(_) => Err(refused("there is no such working directory")),
    }
}

/// The agent's own folder; where it was claimed, exactly what was.
async fn own(program: &ProgramSpec, claimed: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let Some(claimed) = claimed else {
        return Ok(program.working_dir.clone());
    };
    let place = claimed.clone();
    match spawn_blocking(move || place.canonicalize()).await {
        Ok(Ok(folder)) if folder != claimed => {
            let why = "its working directory was replaced while it was started";
            Err(Failure::new(Code::NotStarted, why))
        }
        _ => Ok(claimed), // One that is not there is for the start to tell.
    }
}

fn found(allowance: &Allowance, chosen: &Path) -> io::Result<Option<PathBuf>> {
    let folder = chosen.canonicalize()?;
    if !folder.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let mut allowed = allowance.folders.iter().filter_map(|allowed| allowed.canonicalize().ok());
    Ok(allowed.any(|allowed| folder.starts_with(allowed)).then_some(folder))
}

fn refused(message: &str) -> Failure {
    Failure::new(Code::OverrideRefused, message)
}
