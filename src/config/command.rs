//! The command of an agent, found on this machine.

use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::fault::{Complaint, Severity, said};
use super::reader::{Found, Reader};
use super::section::Section;

/// Reads `command` and finds its file, on `path` unless it is a path itself.
///
/// Where a missing program is a warning, the command stays as written.
pub(super) fn read(
    section: &mut Section<'_>,
    path: Option<String>,
    lacking: Severity,
) -> Option<Found<PathBuf>> {
    let reader = section.reader;
    if !section.has("command") {
        section.entry("command");
        reader.error(&section.place.below("command").hidden(), "is needed");
        return None;
    }
    let command = section.nonblank("command")?;
    let found = search(reader, &command.value, path.as_deref());
    if found.is_none() {
        reader.record(lacking, &command.place, missing(&command.value));
    }
    let value = found.unwrap_or_else(|| PathBuf::from(&command.value));
    Some(Found { value, place: command.place })
}

/// The executable file that is meant: by its path, or by its name on `path`.
pub(super) fn search(reader: &Reader<'_>, name: &str, path: Option<&str>) -> Option<PathBuf> {
    if name.contains('/') {
        let file = reader.resolve(name);
        return is_executable(&file).then_some(file);
    }
    on_path(name, path.unwrap_or_default())
}

/// The first executable file of that name. Folders that are not absolute are passed over: what
/// they hold depends on where the service was started.
fn on_path(name: &str, path: &str) -> Option<PathBuf> {
    let folders = path.split(':').filter(|folder| folder.starts_with('/'));
    folders.map(|folder| Path::new(folder).join(name)).find(|file| is_executable(file))
}

/// Whether a file can be run by us.
fn is_executable(file: &Path) -> bool {
    file.is_file() && access(file, AccessFlags::X_OK).is_ok()
}

/// What is said of a command that was not found.
fn missing(command: &str) -> Complaint {
    let complaint = if command.contains('/') {
        said("is not an executable file")
    } else {
        said("no such program on the PATH")
    };
    match command {
        _ if command.starts_with('~') => {
            complaint.hint("`~` means nothing here: write the whole path")
        }
        _ if command.contains(' ') => complaint.hint("put the arguments into `args`"),
        _ => complaint,
    }
}
