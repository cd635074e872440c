//! Detection of a program that waits for input from a person.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::program::PromptPatterns;

/// Message of the failure. Published; never reworded.
const PROMPT_FAILURE_MESSAGE: &str = "Interactive input required - execution not supported";

/// Number of bytes at the end of a line that are inspected.
pub const MAX_INSPECTED_LINE_BYTES: usize = 4096;

/// Number of bytes at the end of standard error that are searched for complaints.
const MAX_INSPECTED_STDERR_BYTES: usize = 64 << 10;

/// Terminal escape sequences, which may follow a question.
static TERMINAL_ESCAPES: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f]").ok());

/// Messages of programs that find no terminal, or that reach the end of their input.
static TTY_ERRORS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(TTY_ERROR_PATTERN).ok());

const TTY_ERROR_PATTERN: &str = r"(?i)(?:open|opening) '?/dev/tty|/dev/tty'?: (?:No such device|Device not configured)|could not open a (?:new )?tty|no tty present|a terminal is required|(?:std)?in(?:put)? is not a (?:tty|terminal)|not running in a terminal|EOF when reading a line";

/// Returns true if an unterminated line requests input from a person.
#[must_use]
pub fn is_prompt(prompts: &PromptPatterns, line: &str) -> bool {
    let start = line.ceil_char_boundary(line.len().saturating_sub(MAX_INSPECTED_LINE_BYTES));
    let line_tail = line.get(start..).unwrap_or_default();
    let Some(escapes) = TERMINAL_ESCAPES.as_ref() else { return false };
    let visible_text = escapes.replace_all(line_tail, "");
    !visible_text.trim().is_empty()
        && prompts.patterns.iter().any(|pattern| pattern.is_match(&visible_text))
}

/// Returns true if a program failed because its question was not answered: one of its outputs ends with a question, or
/// it complains about a missing terminal.
#[must_use]
pub fn has_unanswered_prompt(prompts: &PromptPatterns, stdout: &str, stderr: &str) -> bool {
    let ends_with_prompt =
        |text: &str| is_prompt(prompts, text.rsplit('\n').next().unwrap_or_default());
    let start = stderr.ceil_char_boundary(stderr.len().saturating_sub(MAX_INSPECTED_STDERR_BYTES));
    let stderr_tail = stderr.get(start..).unwrap_or_default();
    let has_tty_error = || TTY_ERRORS.as_ref().is_some_and(|pattern| pattern.is_match(stderr_tail));
    !prompts.patterns.is_empty()
        && (ends_with_prompt(stdout) || ends_with_prompt(stderr) || has_tty_error())
}

/// Returns the failure of such a program.
#[must_use]
pub fn prompt_failure() -> Failure {
    Failure::new(Code::Interactive, PROMPT_FAILURE_MESSAGE)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn prompt_patterns(patterns: &[&str]) -> PromptPatterns {
        let patterns = patterns.iter().map(|pattern| Regex::new(pattern).unwrap()).collect();
        PromptPatterns { patterns, silence: Duration::from_secs(2) }
    }

    #[test]
    fn a_prompt_is_detected_after_terminal_escapes() {
        let prompts = prompt_patterns(&[r"\[y/N\]\s*$"]);
        for line in ["Go on? [y/N] ", "\u{1b}[1mGo on? [y/N]\u{1b}[0m ", "\rGo on? [y/N]"] {
            assert!(is_prompt(&prompts, line), "{line:?}");
        }
        for line in ["", " ", "\u{1b}[0m", "[y/N] was asked", &format!("[y/N]{}", "x".repeat(5000))]
        {
            assert!(!is_prompt(&prompts, line), "{line:?}");
        }
        assert!(is_prompt(&prompts, &format!("{} [y/N]", "é".repeat(5000))));
    }

    #[test]
    fn a_failure_at_a_prompt_or_without_a_terminal_is_detected() {
        let prompts = prompt_patterns(&[r"\[y/N\]\s*$"]);
        for (stdout, stderr, expected) in [
            ("done\nGo on? [y/N] ", "", true),
            ("Go on? [y/N] ", "EOFError: EOF when reading a line\n", true),
            ("", "Overwrite? [y/N]", true),
            ("", "sh: 1: cannot open /dev/tty: No such device or address\n", true),
            ("", "sudo: a terminal is required to read the password\n", true),
            ("", "the input device is not a TTY\n", false),
            ("Go on? [y/N] no\n", "it failed\n", false),
            ("", "", false),
        ] {
            let detected = has_unanswered_prompt(&prompts, stdout, stderr);
            assert_eq!(detected, expected, "{stdout:?} {stderr:?}");
        }
    }

    #[test]
    fn no_prompt_is_detected_without_patterns() {
        let no_patterns = prompt_patterns(&[]);
        assert!(!has_unanswered_prompt(&no_patterns, "Go on? [y/N] ", "cannot open /dev/tty"));
    }

    #[test]
    fn the_constants_compile() {
        assert!(TERMINAL_ESCAPES.is_some() && TTY_ERRORS.is_some());
    }
}
