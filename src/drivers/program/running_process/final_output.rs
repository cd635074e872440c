//! Last output lines of a program that was ended because it was silent or took too long.

use std::sync::LazyLock;

use algonius_actors::driver::report::Reporter;
use regex::Regex;

use crate::drivers::output::display_label::redacted_display_text;

/// Number of lines that are shown.
const MAX_LAST_LINES: usize = 3;

/// Greatest number of characters of these lines.
const MAX_DISPLAYED_CHARS: usize = 300;

/// Absolute paths: callers must not see the folders of this machine.
static ABSOLUTE_PATHS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(^|[\s"'(=])(?:/[\w.@+-]+)+/([\w.@+-]+)"#).ok());

/// Bytes of a text that are redacted for the lines: a secret that is cut at their start is not shown.
const TAIL_BYTES_TO_REDACT: usize = 16 * 1024;

/// Returns the last lines of the first of these texts that has any, redacted and in one line.
pub(super) fn redacted_last_lines(texts: &[&str], reporter: &Reporter) -> String {
    let last_lines = texts.iter().find_map(|text| {
        let from = text.len().saturating_sub(TAIL_BYTES_TO_REDACT);
        let from = (from..=text.len()).find(|place| text.is_char_boundary(*place))?;
        // Redacted before the cut into lines: a part of a secret would not be recognised.
        last_lines(&reporter.redact(text.get(from..)?))
    });
    last_lines
        .map(|lines| redacted_display_text(reporter, &hide_folders(&lines)))
        .unwrap_or_default()
}

fn last_lines(text: &str) -> Option<String> {
    let lines =
        text.lines().rev().map(str::trim).filter(|line| !line.is_empty()).take(MAX_LAST_LINES);
    let mut lines: Vec<_> = lines.collect();
    lines.reverse();
    let joined = lines.join(" / ");
    let start = joined.char_indices().rev().nth(MAX_DISPLAYED_CHARS).map_or(0, |(place, _)| place);
    (!joined.is_empty()).then(|| joined.get(start..).unwrap_or_default().to_owned())
}

fn hide_folders(text: &str) -> String {
    let hide = |paths: &Regex| paths.replace_all(text, "$1.../$2").into_owned();
    ABSOLUTE_PATHS.as_ref().map_or_else(String::new, hide)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_up_to_a_length() {
        assert_eq!(last_lines("a\n\nb\n c \nd\n\n").as_deref(), Some("b / c / d"));
        assert_eq!(last_lines(" \n\n"), None);
        let long = last_lines(&"é".repeat(10_000)).unwrap();
        assert!(long.chars().count() <= MAX_DISPLAYED_CHARS + 1, "{}", long.len());
    }

    #[test]
    fn folders_of_the_machine_are_hidden() {
        let words = r#"cannot open /srv/secret/project/notes.txt: see "/etc/x/y" or http://h/v1/a"#;
        let expected = r#"cannot open .../notes.txt: see ".../y" or http://h/v1/a"#;
        assert_eq!(hide_folders(words), expected);
    }
}
