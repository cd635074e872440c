//! Details of a failed task, in addition to its error: exit code, last standard error, and the command that shows
//! more.

use crate::wire::api::history::ExecutionDetail;

/// Number of last lines of standard error that are shown.
const MAX_STDERR_LINES: usize = 5;

/// Returns further lines for the message of an error, each with its line break before it. `stderr` is the end of the
/// standard error.
pub(crate) fn details_text(detail: &ExecutionDetail, stderr: &str) -> String {
    let exit_code_line = detail.entry.exit_code.map(|code| format!("\n  exit code: {code}"));
    let mut text = exit_code_line.unwrap_or_default();
    let last_lines: Vec<_> = stderr.lines().rev().take(MAX_STDERR_LINES).collect();
    for line in last_lines.into_iter().rev() {
        text.push_str(&format!("\n  standard error: {line}"));
    }
    text.push_str(&format!("\n  more: algonius tasks show {}", detail.entry.id));
    text
}
