//! Secrets of a configuration: their files, and the shortest one that is redacted.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use algonius_redact::Redactor;

/// Greatest size in bytes of a file that a secret is read from.
const MAX_SECRET_FILE_BYTES: u64 = 64 << 10;
/// Diagnostic about a missing variable of the service.
pub(crate) const VARIABLE_NOT_SET: &str = "this variable is not set in the service's environment";

/// Fault of a variable whose value is no text.
pub(crate) const VARIABLE_NOT_UTF_8: &str =
    "this variable is not UTF-8 in the service's environment";

/// Returns the text of a file without the line break at its end.
pub(crate) fn read_secret_file(path: &Path) -> io::Result<String> {
    // The read of a pipe could wait for ever, and that of a device could have no end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut text = String::new();
    // One byte more than permitted is enough to recognize a longer file.
    fs::File::open(path)?.take(MAX_SECRET_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_SECRET_FILE_BYTES {
        return Err(io::Error::other("it is too long for a secret"));
    }
    text.truncate(text.trim_end_matches(['\n', '\r']).len());
    Ok(text)
}

/// Returns true if a secret is long enough to be recognized in a text.
pub(crate) fn is_redactable(secret: &str) -> bool {
    secret.chars().count() >= Redactor::MIN_VALUE_CHARS
}
