//! Detection of a program that waits for input from a person.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::program::PromptContract;

/// Message of the failure. Published; never reworded.
const SENTENCE: &str = "Interactive input required - execution not supported";

/// Number of bytes at the end of a line that are inspected.
pub const LONGEST_LINE: usize = 512;

/// Number of bytes at the end of standard error that are searched for complaints.
const COMPLAINT: usize = 4096;

/// Terminal escape sequences, which may follow a question.
static ESCAPES: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f]").ok());

/// Messages of programs that find no terminal, or that reach the end of their input.
static COMPLAINTS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(COMPLAINTS_PATTERN).ok());

const COMPLAINTS_PATTERN: &str = r"(?i)(?:open|opening) '?/dev/tty|/dev/tty'?: (?:No such device|Device not configured)|could not open a (?:new )?tty|no tty present|a terminal is required|(?:std)?in(?:put)? is not a (?:tty|terminal)|not running in a terminal|EOF when reading a line";

/// Returns true if an unterminated line requests input from a person.
#[must_use]
pub fn is_prompt(contract: &PromptContract, line: &str) -> bool {
    let from = line.ceil_char_boundary(line.len().saturating_sub(LONGEST_LINE));
    let end = line.get(from..).unwrap_or_default();
    let Some(escapes) = ESCAPES.as_ref() else { return false };
    let seen = escapes.replace_all(end, "");
    !seen.trim().is_empty() && contract.patterns.iter().any(|pattern| pattern.is_match(&seen))
}

/// Returns true if a program failed because its question was not answered: one of its outputs ends with a question, or
/// it complains about a missing terminal.
#[must_use]
pub fn wanted_a_person(contract: &PromptContract, stdout: &str, stderr: &str) -> bool {
    let asks = |text: &str| is_prompt(contract, text.rsplit('\n').next().unwrap_or_default());
    let from = stderr.ceil_char_boundary(stderr.len().saturating_sub(COMPLAINT));
    let end = stderr.get(from..).unwrap_or_default();
    let complains = || COMPLAINTS.as_ref().is_some_and(|pattern| pattern.is_match(end));
    !contract.patterns.is_empty() && (asks(stdout) || asks(stderr) || complains())
}

/// Returns the failure of such a program.
#[must_use]
pub fn failure() -> Failure {
    Failure::new(Code::Interactive, SENTENCE)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn contract(patterns: &[&str]) -> PromptContract {
        let patterns = patterns.iter().map(|pattern| Regex::new(pattern).unwrap()).collect();
        PromptContract { patterns, silence: Duration::from_secs(2) }
    }

    #[test]
    fn a_prompt_is_detected_after_terminal_escapes() {
        let contract = contract(&[r"\[y/N\]\s*$"]);
        for line in ["Go on? [y/N] ", "\u{1b}[1mGo on? [y/N]\u{1b}[0m ", "\rGo on? [y/N]"] {
            assert!(is_prompt(&contract, line), "{line:?}");
        }
        for line in ["", " ", "\u{1b}[0m", "[y/N] was asked", &format!("[y/N]{}", "x".repeat(600))]
        {
            assert!(!is_prompt(&contract, line), "{line:?}");
        }
        assert!(is_prompt(&contract, &format!("{} [y/N]", "é".repeat(600))));
    }

    #[test]
    fn a_failure_at_a_prompt_or_without_a_terminal_is_detected() {
        let contract = contract(&[r"\[y/N\]\s*$"]);
        for (stdout, stderr, wanted) in [
            ("done\nGo on? [y/N] ", "", true),
            ("Go on? [y/N] ", "EOFError: EOF when reading a line\n", true),
            ("", "Overwrite? [y/N]", true),
            ("", "sh: 1: cannot open /dev/tty: No such device or address\n", true),
            ("", "sudo: a terminal is required to read the password\n", true),
            ("", "the input device is not a TTY\n", false),
            ("Go on? [y/N] no\n", "it failed\n", false),
            ("", "", false),
        ] {
            let told = wanted_a_person(&contract, stdout, stderr);
            assert_eq!(told, wanted, "{stdout:?} {stderr:?}");
        }
    }

    #[test]
    fn no_prompt_is_detected_without_patterns() {
        let none = contract(&[]);
        assert!(!wanted_a_person(&none, "Go on? [y/N] ", "cannot open /dev/tty"));
    }

    #[test]
    fn the_constants_compile() {
        assert!(ESCAPES.is_some() && COMPLAINTS.is_some());
    }
}
