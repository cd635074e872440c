//! Files that are written as a whole or not at all, because the service may read them at any time.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Creates a file with this text.
///
/// # Errors
/// Fails if the file exists already, or if it cannot be written; then nothing remains.
pub(in crate::cli) fn create(file: &Path, text: &str) -> io::Result<()> {
    // A link never replaces a file that another process created meanwhile.
    write_and_place(file, text, None, |temporary| {
        fs::hard_link(temporary, file).and_then(|()| fs::remove_file(temporary))
    })
}

/// Replaces the text of a file, whose mode stays as it is, or creates the file.
///
/// # Errors
/// Fails if the file cannot be written; it stays as it is then.
pub(in crate::cli) fn replace(file: &Path, text: &str) -> io::Result<()> {
    let permissions = match fs::metadata(file) {
        Ok(metadata) => Some(metadata.permissions()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    write_and_place(file, text, permissions, |temporary| fs::rename(temporary, file))
}

/// Writes a temporary file in the folder of a file, and puts it in place.
fn write_and_place(
    file: &Path,
    text: &str,
    permissions: Option<Permissions>,
    put_in_place: impl FnOnce(&PathBuf) -> io::Result<()>,
) -> io::Result<()> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let temporary_path = file.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = File::create_new(&temporary_path).and_then(|mut temporary_file| {
        if let Some(permissions) = permissions {
            temporary_file.set_permissions(permissions)?;
        }
        temporary_file.write_all(text.as_bytes())?;
        temporary_file.sync_all()
    });
    let placed = written.and_then(|()| put_in_place(&temporary_path));
    if placed.is_err() {
        _ = fs::remove_file(&temporary_path); // The first fault is the one to report.
    }
    placed
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_created_once_and_replaced_with_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.toml");
        create(&file, "one").unwrap();
        assert_eq!(create(&file, "two").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&file).unwrap(), "one");
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        replace(&file, "three").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "three");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        replace(&folder.path().join("b.toml"), "four").unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary file remains");
    }

    #[test]
    fn a_file_that_cannot_be_written_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("missing/a.toml");
        assert!(create(&target, "one").is_err() && replace(&target, "one").is_err());
        let blocked = folder.path().join("folder");
        fs::create_dir(&blocked).unwrap();
        assert!(replace(&blocked, "one").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file remains");
    }
}
