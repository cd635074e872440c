//! Labels: short texts of a program that are shown beside its output.

use algonius_actors::driver::report::Reporter;

/// Greatest length of a label in characters.
const MAX_LABEL_CHARS: usize = 300;

/// Returns a short redacted text for display, in one line.
pub(in crate::drivers) fn redacted_label(reporter: &Reporter, text: &str) -> String {
    // Redacted before the cut: a secret that is cut would not be recognised.
    let redacted = reporter.redact(text);
    let single_line: String =
        redacted.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut shortened: String = single_line.trim().chars().take(MAX_LABEL_CHARS).collect();
    if shortened.len() < single_line.trim().len() {
        shortened.push('…');
    }
    shortened
}
