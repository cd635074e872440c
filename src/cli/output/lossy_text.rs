//! Text from outside, which may not be UTF-8.

use super::CliOutput;

/// Returns bytes as text, with U+FFFD in the place of those that are not UTF-8, and prints their number. `source` is
/// the name of their origin in this note.
pub(crate) fn decode_with_note(source: &str, bytes: Vec<u8>, out: &CliOutput) -> String {
    if let Some(note) = replacement_note(source, invalid_byte_count(&bytes)) {
        out.print_note(&note);
    }
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Returns the number of bytes that are not UTF-8.
pub(crate) fn invalid_byte_count(bytes: &[u8]) -> usize {
    bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum()
}

/// Returns the note about this number of replaced bytes; `None` if there are none.
pub(crate) fn replacement_note(source: &str, count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("note: 1 byte of {source} is not UTF-8; it becomes U+FFFD")),
        _ => Some(format!("note: {count} bytes of {source} are not UTF-8; they become U+FFFD")),
    }
}
