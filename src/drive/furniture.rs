//! The execution's own folder, with what stands in it before the program begins.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use algonius_actors::decide::contract::files_failure;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::request::Request;
use tokio::task::spawn_blocking;

use super::folder::Folder;
use super::handed;
use super::sandbox::{self, Hold};
use crate::warden::Launch;

/// What stands in an execution's own folder.
pub(super) struct Furniture {
    /// Where it is.
    pub(super) folder: PathBuf,
    /// Whether it has a place for temporary files.
    pub(super) has_place: bool,
    /// The name of the file with the input, where there is one.
    pub(super) input: Option<String>,
    /// Whether files were handed over.
    pub(super) has_files: bool,
    /// What was asked.
    pub(super) request: Arc<Request>,
}

/// Makes the folder, where one is needed, and the sandbox: what looks at files does so in one go,
/// beside the work of others.
///
/// # Errors
/// When the system does not give what is needed.
pub(super) async fn furnish(
    furniture: Option<Furniture>,
    hold: Hold,
    launch: Launch,
) -> Result<(Option<Folder>, Launch), Failure> {
    if furniture.is_none() && matches!(hold, Hold::Free) {
        return Ok((None, launch));
    }
    let made = spawn_blocking(move || {
        let folder = furniture.map(Furniture::make).transpose()?;
        Ok((folder, sandbox::give(hold, launch)?))
    });
    made.await.unwrap_or_else(|error| Err(unmade(&io::Error::other(error))))
}

impl Furniture {
    fn make(self) -> Result<Folder, Failure> {
        let Self { folder, has_place, input, has_files, request } = self;
        let folder = Folder::make(folder).map_err(|error| unmade(&error))?;
        if has_place {
            folder.make_place(sandbox::TEMPORARY).map_err(|error| unmade(&error))?;
        }
        if let Some(name) = input {
            let written = folder.write(&name, request.input.text().as_bytes());
            written.map_err(|error| unmade(&error))?;
        }
        if has_files {
            handed::write(&request.input.parts, &folder)?;
        }
        Ok(folder)
    }
}

fn unmade(error: &io::Error) -> Failure {
    tracing::error!(%error, "no folder for an execution's files");
    files_failure(error.raw_os_error())
}
