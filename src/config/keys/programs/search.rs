//! Search for the file of a program.

use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use crate::config::table::ConfigReader;

/// Command as configured, and the folders of its file. The service repeats the search while it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramSearch {
    /// File, or name of a file in the folders of `search_path`.
    command: PathBuf,
    /// Folders as in `PATH`; unused if `command` contains a folder.
    search_path: Box<str>,
}

impl ProgramSearch {
    pub(crate) fn new(reader: &ConfigReader<'_>, command: &str, search_path: Option<&str>) -> Self {
        if command.contains('/') {
            return Self { command: reader.resolve_path(command), search_path: Box::default() };
        }
        Self {
            command: PathBuf::from(command),
            search_path: search_path.unwrap_or_default().into(),
        }
    }

    /// Returns the executable file of the command. Blocks on the file system.
    #[must_use]
    pub fn find(&self) -> Option<PathBuf> {
        if self.command.is_absolute() {
            return Some(self.command.clone()).filter(|file| is_executable(file));
        }
        // A relative folder is skipped, because its content depends on the folder in which the service was started.
        let folders = self.search_path.split(':').filter(|folder| folder.starts_with('/'));
        let files = folders.map(|folder| Path::new(folder).join(&self.command));
        files.into_iter().find(|file| is_executable(file))
    }

    /// Returns the file, or the name of a file in the folders of the search path.
    pub(crate) fn command(&self) -> &Path {
        &self.command
    }

    /// Returns the name of the program without its folder.
    #[must_use]
    pub fn name(&self) -> Box<str> {
        let name = self.command.file_name().unwrap_or(self.command.as_os_str());
        name.to_string_lossy().into()
    }
}

/// Returns the executable file: by its path, or by its name on `search_path`.
pub(crate) fn find_program(
    reader: &ConfigReader<'_>,
    name: &str,
    search_path: Option<&str>,
) -> Option<PathBuf> {
    ProgramSearch::new(reader, name, search_path).find()
}

/// Returns true if this process may execute the file.
#[must_use]
pub fn is_executable(file: &Path) -> bool {
    file.is_file() && access(file, AccessFlags::X_OK).is_ok()
}
