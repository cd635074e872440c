//! Token of the command line: created once, readable by its owner alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Returns the token in a file of mode 0600; creates it if there is none.
///
/// # Errors
/// Fails if the file can be neither read nor created.
pub(crate) fn read_or_create(file: &Path) -> io::Result<String> {
    match read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(file),
        existing => existing,
    }
}

/// Creates the token file. A reader always finds a whole token: the file is written under another name, and linked into
/// place, which never replaces an existing file.
fn create(file: &Path) -> io::Result<String> {
    if let Some(folder) = file.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let text = generate_random_token()?;
    let temporary_path = file.with_added_extension(std::process::id().to_string());
    // A rename would replace the token of another process, which may already be in use.
    let link_result =
        write(&temporary_path, &text).and_then(|()| fs::hard_link(&temporary_path, file));
    let removal_result = fs::remove_file(&temporary_path);
    match link_result.and(removal_result) {
        Ok(()) => Ok(text),
        // Another process has created one meanwhile.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(file),
        Err(error) => Err(error),
    }
}

fn write(file: &Path, text: &str) -> io::Result<()> {
    // A file of the same name is left over from a process that no longer exists.
    let mut token_file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file)?;
    token_file.write_all(format!("{text}\n").as_bytes())?;
    // The name must not survive a power failure without the token.
    token_file.sync_all()
}

fn read(file: &Path) -> io::Result<String> {
    Ok(fs::read_to_string(file)?.trim().to_owned())
}

/// Replaces the token in a file.
///
/// # Errors
/// Fails if the file cannot be written; the old one stays then.
pub(crate) fn rotate_token(file: &Path) -> io::Result<()> {
    let temporary_path = file.with_added_extension(std::process::id().to_string());
    let replace_result = write(&temporary_path, &generate_random_token()?)
        .and_then(|()| fs::rename(&temporary_path, file));
    if replace_result.is_err() {
        _ = fs::remove_file(&temporary_path); // The first fault is the one to report.
    }
    replace_result
}

/// Returns 256 random bits of the system, as 64 hexadecimal digits.
///
/// # Errors
/// Fails if the system provides none.
pub(crate) fn generate_random_token() -> io::Result<String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_created_once_and_private() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("below/token");
        let text = read_or_create(&file).expect("a token");
        assert_eq!(read_or_create(&file).expect("the same"), text);
        assert_eq!(text.len(), 64);
        let mode = |path: &Path| path.metadata().expect("it").permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().expect("it"))), (0o600, 0o700));
    }

    #[test]
    fn a_token_created_concurrently_is_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("token");
        fs::write(&file, "theirs\n").expect("a file");
        assert_eq!(create(&file).expect("a token"), "theirs");
        assert_eq!(fs::read_dir(folder.path()).expect("it").count(), 1, "something was left");
    }
}
