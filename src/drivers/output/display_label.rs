//! Labels: short texts of a program that are shown beside its output.

use algonius_actors::driver::report::Reporter;
use sha2::{Digest, Sha256};

/// Greatest length of a label in characters.
const MAX_LABEL_CHARS: usize = 300;

/// Greatest number of bytes of a text that are redacted for a label.
const MAX_REDACTED_BYTES: usize = 64 << 10;

/// Bytes at the end of a longer text that are redacted but not shown: the start of a secret that was cut is there.
const OMITTED_TAIL_BYTES: usize = 4 << 10;

/// Returns a short redacted text for display, in one line.
pub(in crate::drivers) fn redacted_display_text(reporter: &Reporter, text: &str) -> String {
    let redacted = redacted_prefix(reporter, text);
    shorten(&redacted, text.len() > MAX_REDACTED_BYTES).0
}

/// Returns the redacted form of an id. A long id is shortened and ends with a digest: ids that differ in their length
/// or in their first 60 KiB have different forms, and the same id always has the same.
pub(in crate::drivers) fn redacted_id(reporter: &Reporter, id: &str) -> String {
    let redacted = redacted_prefix(reporter, id);
    let (label, is_shortened) = shorten(&redacted, id.len() > MAX_REDACTED_BYTES);
    if !is_shortened {
        return label;
    }
    // Of the redacted id: the digest of a short secret could be tried out.
    let digest = Sha256::new().chain_update(&redacted).chain_update(id.len().to_le_bytes());
    let digest_prefix =
        digest.finalize().iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    format!("{label}{digest_prefix:016x}")
}

/// Returns the start of a text, redacted, without the part in which a secret may have been cut.
fn redacted_prefix(reporter: &Reporter, text: &str) -> String {
    // Redacted before the cut: a secret that is cut would not be recognised.
    let start = text.get(..text.floor_char_boundary(MAX_REDACTED_BYTES)).unwrap_or(text);
    let mut redacted = reporter.redact(start).to_string();
    if start.len() < text.len() {
        redacted.truncate(
            redacted.floor_char_boundary(redacted.len().saturating_sub(OMITTED_TAIL_BYTES)),
        );
    }
    redacted
}

/// Returns the label of a redacted text, and true if the label is shorter than the text or the text has more.
fn shorten(redacted: &str, has_more: bool) -> (String, bool) {
    let single_line: String =
        redacted.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut label: String = single_line.trim().chars().take(MAX_LABEL_CHARS).collect();
    let is_shortened = label.len() < single_line.trim().len() || has_more;
    if is_shortened {
        label.push('…');
    }
    (label, is_shortened)
}
