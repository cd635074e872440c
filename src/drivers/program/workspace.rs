//! Working directory of an attempt, and the claim that excludes other writers meanwhile.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use algonius_actors::driver::AttemptWork;
use algonius_actors::model::agent::workspace::Workspace;
use algonius_actors::model::agent::{Access, AgentSpec, OverridePolicy};
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::request::Request;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::ProgramSpec;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Time limit for resolving a folder; a slower one is on a broken mount. The start has a deadline of its own.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the folder in which a writing agent would work now: the one that its caller chose or its own, without links.
/// A folder that cannot be resolved stays as configured; the start is refused then.
pub(super) async fn resolve_workspace(
    program: &ProgramSpec,
    spec: &AgentSpec,
    request: &Request,
) -> Option<Workspace> {
    if spec.access == Access::ReadOnly {
        return None;
    }
    let override_dir = request.effective_overrides().working_dir.map(PathBuf::from);
    let unresolved_path = override_dir.unwrap_or_else(|| program.working_dir.clone());
    let path = unresolved_path.clone();
    let resolved = timeout(RESOLVE_TIMEOUT, spawn_blocking(move || path.canonicalize())).await;
    let resolved = resolved.ok().and_then(Result::ok).and_then(Result::ok);
    Some(Workspace::new(resolved.unwrap_or(unresolved_path)))
}

/// Returns the agent's own folder, or the one that its caller chose, without a link in its path. A link may lead out of
/// the allowed folders, so the resolved path counts. The work goes to the claimed folder, even if the links that led
/// there have changed.
///
/// # Errors
/// `override-refused`, and `agent-not-started` if the agent's own folder was replaced since it was claimed.
pub(super) async fn resolve_working_dir(
    program: &ProgramSpec,
    work: &AttemptWork,
) -> Result<PathBuf, Failure> {
    let workspace_path = work.workspace.as_ref().map(|workspace| workspace.path().to_owned());
    let Some(override_dir) = work.request.effective_overrides().working_dir else {
        return own_working_dir(program, workspace_path).await;
    };
    let override_policy = work.spec.override_policy.clone();
    let unresolved_path = workspace_path.clone().unwrap_or_else(|| override_dir.into());
    let resolved =
        spawn_blocking(move || resolve_override(&override_policy, &unresolved_path)).await;
    match resolved.map_err(io::Error::other).flatten() {
        Ok(Some(folder)) if workspace_path.is_none_or(|claimed| claimed == folder) => Ok(folder),
        Ok(_) => Err(override_failure("the working directory is outside of the allowed folders")),
        Err(_) => Err(override_failure("the working directory does not exist")),
    }
}

/// Returns the agent's own folder; if a folder was claimed, exactly that one.
async fn own_working_dir(
    program: &ProgramSpec,
    workspace_path: Option<PathBuf>,
) -> Result<PathBuf, Failure> {
    let Some(claimed) = workspace_path else {
        return Ok(program.working_dir.clone());
    };
    let path = claimed.clone();
    match spawn_blocking(move || path.canonicalize()).await {
        // A link in its place would lead the program to a folder that another agent may have claimed.
        Ok(Ok(folder)) if folder != claimed => {
            let message = "its working directory was replaced while it was started";
            Err(Failure::new(Code::NotStarted, message))
        }
        _ => Ok(claimed), // The start reports a missing folder.
    }
}

fn resolve_override(
    override_policy: &OverridePolicy,
    folder_path: &Path,
) -> io::Result<Option<PathBuf>> {
    let folder = folder_path.canonicalize()?;
    if !folder.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let mut allowed =
        override_policy.working_dir_roots.iter().filter_map(|allowed| allowed.canonicalize().ok());
    Ok(allowed.any(|allowed| folder.starts_with(allowed)).then_some(folder))
}

fn override_failure(message: &str) -> Failure {
    Failure::new(Code::OverrideRefused, message)
}
