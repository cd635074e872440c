//! Text from outside, which may not be UTF-8.

use super::CliOutput;

/// Returns bytes as text, with U+FFFD in the place of those that are not UTF-8, and prints their number. `source` is
/// the name of their origin in this note.
pub(crate) fn decode(source: &str, bytes: Vec<u8>, out: &CliOutput) -> String {
    let replaced: usize = bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    match replaced {
        0 => {}
        1 => out.print_note(&format!("note: 1 byte of {source} is not UTF-8; it becomes U+FFFD")),
        _ => out.print_note(&format!(
            "note: {replaced} bytes of {source} are not UTF-8; they become U+FFFD"
        )),
    }
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
