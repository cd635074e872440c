//! Folder for temporary files.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// Folder that every system has.
const DEFAULT_FOLDER: &str = "/tmp";

/// Returns the folder for temporary files: `TMPDIR`, or `/tmp` if the variable is absent, empty or relative.
#[must_use]
pub(crate) fn temporary_folder() -> PathBuf {
    folder_from_variable(env::var_os("TMPDIR"))
}

fn folder_from_variable(variable: Option<OsString>) -> PathBuf {
    // A relative folder would be created in the working folder of the command.
    let folder = variable.map(PathBuf::from).filter(|folder| folder.is_absolute());
    folder.unwrap_or_else(|| PathBuf::from(DEFAULT_FOLDER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_absolute_folder_counts() {
        for (variable, expected) in
            [(None, "/tmp"), (Some(""), "/tmp"), (Some("here"), "/tmp"), (Some("/var/x"), "/var/x")]
        {
            assert_eq!(folder_from_variable(variable.map(OsString::from)), PathBuf::from(expected));
        }
    }
}
