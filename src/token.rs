//! The token of the command line: made once, readable by its owner alone.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// The token in a file of mode 0600; made when there is none.
///
/// # Errors
/// When the file can be neither read nor made.
pub(crate) fn ensure(file: &Path) -> io::Result<String> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(file),
        Err(error) => Err(error),
    }
}

fn make(file: &Path) -> io::Result<String> {
    if let Some(folder) = file.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let text = random()?;
    let mut opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    opened.write_all(format!("{text}\n").as_bytes())?;
    Ok(text)
}

/// 256 bits of the system's randomness, as 64 hexadecimal digits.
fn random() -> io::Result<String> {
    let mut bytes = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_made_once_and_only_its_owner_can_read_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("below/token");
        let text = ensure(&file).expect("a token");
        assert_eq!(ensure(&file).expect("the same"), text);
        assert_eq!(text.len(), 64);
        let mode = |path: &Path| path.metadata().expect("it").permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().expect("it"))), (0o600, 0o700));
    }
}
