//! Labels: short texts of a program that are shown beside its output.

use algonius_actors::driver::report::Reporter;

/// Greatest length of a label in characters.
const MAX_LABEL_CHARS: usize = 300;

/// Greatest number of bytes of a text that are redacted for a label.
const MAX_REDACTED_BYTES: usize = 64 << 10;

/// Bytes at the end of a longer text that are redacted but not shown: the start of a secret that was cut is there.
const HIDDEN_BYTES: usize = 4 << 10;

/// Returns a short redacted text for display, in one line.
pub(in crate::drivers) fn redacted_label(reporter: &Reporter, text: &str) -> String {
    // Redacted before the cut: a secret that is cut would not be recognised.
    let start = text.get(..text.floor_char_boundary(MAX_REDACTED_BYTES)).unwrap_or(text);
    let redacted = reporter.redact(start);
    let hidden_bytes = if start.len() < text.len() { HIDDEN_BYTES } else { 0 };
    let shown_end = redacted.floor_char_boundary(redacted.len().saturating_sub(hidden_bytes));
    let redacted = redacted.get(..shown_end).unwrap_or_default();
    let single_line: String =
        redacted.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut shortened: String = single_line.trim().chars().take(MAX_LABEL_CHARS).collect();
    if shortened.len() < single_line.trim().len() || start.len() < text.len() {
        shortened.push('…');
    }
    shortened
}
