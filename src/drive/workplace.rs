//! The folder in which an attempt starts.

use std::io;
use std::path::{Path, PathBuf};

use algonius_actors::model::agent::Allowance;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::ProgramSpec;
use algonius_actors::ports::driver::Work;

/// The agent's own folder, or the one that its caller chose, without a link in its path. A link may
/// lead out of what is allowed, so where the path really leads is what counts.
///
/// # Errors
/// `override-refused`.
pub(super) async fn workplace(program: &ProgramSpec, work: &Work) -> Result<PathBuf, Failure> {
    let Some(chosen) = work.request.overrides().working_dir else {
        return Ok(program.working_dir.clone());
    };
    let allowance = work.spec.allowance.clone();
    let found = tokio::task::spawn_blocking(move || found(&allowance, chosen.as_ref())).await;
    match found.map_err(io::Error::other).flatten() {
        Ok(Some(folder)) => Ok(folder),
        Ok(None) => Err(refused("the working directory leads out of what the agent allows")),
        Err(_) => Err(refused("there is no such working directory")),
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
