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
use super::process::Site;
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

/// Makes the folder, where one is needed, and the sandbox: what looks at files does so in one go, and
/// beside the work of others where it may have to wait for a disk.
///
/// # Errors
/// When the system does not give what is needed.
pub(super) async fn furnish(
    furniture: Option<Furniture>,
    hold: Hold,
    launch: Launch,
    site: &Site,
) -> Result<(Option<Folder>, Launch), Failure> {
    let is_at_hand = furniture.as_ref().is_none_or(Furniture::is_small) && hold.is_at_hand(site);
    let (is_at_hand, in_memory) = (is_at_hand && site.in_memory, site.in_memory);
    let make = move || {
        let folder = furniture.map(Furniture::make).transpose()?;
        let folder = folder.map(|folder| folder.in_memory(in_memory));
        Ok((folder, sandbox::give(hold, launch)?))
    };
    if is_at_hand {
        return make();
    }
    let made = spawn_blocking(make).await;
    made.unwrap_or_else(|error| Err(unmade(&io::Error::other(error))))
}

impl Furniture {
    /// Whether it holds nothing yet.
    const fn is_small(&self) -> bool {
        self.input.is_none() && !self.has_files
    }

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
