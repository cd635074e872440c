//! Labels: short texts of a program that are shown beside its output.

use algonius_actors::driver::report::Reporter;
use sha2::{Digest, Sha256};

/// Greatest length of a label in characters.
const MAX_LABEL_CHARS: usize = 300;

/// Greatest number of bytes of a text that are redacted for a label.
const MAX_REDACTED_BYTES: usize = 64 << 10;

/// Bytes at the end of a longer text that are redacted but not shown: the start of a secret that was cut is there.
const HIDDEN_BYTES: usize = 4 << 10;

/// Returns a short redacted text for display, in one line.
pub(in crate::drivers) fn redacted_label(reporter: &Reporter, text: &str) -> String {
    shorten(reporter, text).0
}

/// Returns the redacted form of an id. A long id is shortened and ends with its digest, so that different ids have
/// different forms, and the same id always has the same.
pub(in crate::drivers) fn redacted_id(reporter: &Reporter, id: &str) -> String {
    let (label, is_shortened) = shorten(reporter, id);
    if !is_shortened {
        return label;
    }
    // Of the redacted id: the digest of a short secret could be tried out.
    let start = id.get(..id.floor_char_boundary(MAX_REDACTED_BYTES)).unwrap_or(id);
    let digest =
        Sha256::new().chain_update(reporter.redact(start)).chain_update(id.len().to_le_bytes());
    let digest =
        digest.finalize().iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    format!("{label}{digest:016x}")
}

/// Returns the label of a text, and true if the text is longer.
fn shorten(reporter: &Reporter, text: &str) -> (String, bool) {
    // Redacted before the cut: a secret that is cut would not be recognised.
    let start = text.get(..text.floor_char_boundary(MAX_REDACTED_BYTES)).unwrap_or(text);
    let redacted = reporter.redact(start);
    let hidden_bytes = if start.len() < text.len() { HIDDEN_BYTES } else { 0 };
    let shown_end = redacted.floor_char_boundary(redacted.len().saturating_sub(hidden_bytes));
    let redacted = redacted.get(..shown_end).unwrap_or_default();
    let single_line: String =
        redacted.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut shortened: String = single_line.trim().chars().take(MAX_LABEL_CHARS).collect();
    let is_shortened = shortened.len() < single_line.trim().len() || start.len() < text.len();
    if is_shortened {
        shortened.push('…');
    }
    (shortened, is_shortened)
}
