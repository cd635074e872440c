//! Files that are replaced as a whole or not at all, because the service may read them at any time.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

/// Creates a file with this text.
///
/// # Errors
/// Fails if the file exists already, or if it cannot be written; then nothing remains.
pub(in crate::cli) fn create(file: &Path, text: &str) -> io::Result<()> {
    // An existing file is never replaced, not even one that another process creates meanwhile.
    let created = File::create_new(file)?;
    let write_result = write(created, text, None);
    if write_result.is_err() {
        _ = fs::remove_file(file); // The first fault is the one to report.
    }
    write_result
}

/// Replaces the text of a file, whose owner and mode stay as they are, or creates the file. A link stays a link.
///
/// # Errors
/// Fails if the file cannot be written; it stays as it is then.
pub(in crate::cli) fn replace(file: &Path, text: &str) -> io::Result<()> {
    let target = match fs::canonicalize(file) {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return create(file, text),
        Err(error) => return Err(error),
    };
    let metadata = fs::metadata(&target)?;
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let temporary_path = target.with_file_name(format!(".{name}.{}", std::process::id()));
    let write_result = File::create_new(&temporary_path)
        .and_then(|temporary_file| write(temporary_file, text, Some(&metadata)))
        .and_then(|()| fs::rename(&temporary_path, &target));
    if write_result.is_err() {
        _ = fs::remove_file(&temporary_path); // The first fault is the one to report.
    }
    write_result
}

/// Writes a new file with the owner and the mode of another one.
fn write(mut file: File, text: &str, original_metadata: Option<&Metadata>) -> io::Result<()> {
    if let Some(original) = original_metadata {
        let new_metadata = file.metadata()?;
        if (new_metadata.uid(), new_metadata.gid()) != (original.uid(), original.gid()) {
            fchown(&file, Some(original.uid()), Some(original.gid()))?;
        }
        file.set_permissions(original.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

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
        let number = fs::metadata(&file).unwrap().ino();
        let link = folder.path().join("link.toml");
        symlink(&file, &link).unwrap();
        replace(&link, "four").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "four");
        assert_ne!(fs::metadata(&file).unwrap().ino(), number, "the file is another one");
        replace(&folder.path().join("b.toml"), "five").unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "no temporary file remains");
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
