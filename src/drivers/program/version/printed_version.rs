//! Version in the output of a program, and the cause if there is none.

use algonius_actors::model::program::ProcessExit;
use regex::Regex;

/// Longest version that is shown, in characters.
const MAX_VERSION_CHARS: usize = 64;

/// Output of a program that ended after a version request.
pub(super) struct VersionOutput {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) exit: ProcessExit,
}

/// Reason why the output of a program has no version. The sentences contain no text of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MissingVersion {
    /// The program failed and printed no version.
    #[error("the version command ended with exit code {0} and printed no version")]
    ExitCode(i32),
    /// A signal ended the program before it printed a version.
    #[error("signal {0} ended the version command, and it printed no version")]
    Signal(i32),
    /// The program printed nothing.
    #[error("the version command printed nothing")]
    Silent,
    /// The output has no version of the expected form.
    #[error("the version command printed no text that matches `program_version.regex`")]
    Unmatched,
    /// The text that matches is no version that can be shown.
    #[error(
        "the text that matches `program_version.regex` has control characters, or more than {MAX_VERSION_CHARS} \
         characters"
    )]
    Unprintable,
}

impl VersionOutput {
    /// Returns the version. Programs such as `java -version` print it to standard error; the error message of a program
    /// that failed is no version.
    pub(super) fn find_version(&self, regex: &Regex) -> Result<String, MissingVersion> {
        let stderr = (self.exit == ProcessExit::Code(0)).then_some(&self.stderr);
        let outputs = [Some(&self.stdout), stderr];
        let matched = outputs.into_iter().flatten().find_map(|text| first_match(regex, text));
        let version = matched.ok_or_else(|| self.cause_of_no_match())?;
        // The text goes to terminals, where control characters have an effect.
        let is_plain =
            version.chars().count() <= MAX_VERSION_CHARS && !version.contains(char::is_control);
        if is_plain { Ok(version.to_owned()) } else { Err(MissingVersion::Unprintable) }
    }

    fn cause_of_no_match(&self) -> MissingVersion {
        let is_silent = self.stdout.trim().is_empty() && self.stderr.trim().is_empty();
        match self.exit {
            ProcessExit::Code(0) if is_silent => MissingVersion::Silent,
            ProcessExit::Code(0) => MissingVersion::Unmatched,
            ProcessExit::Code(code) => MissingVersion::ExitCode(code),
            ProcessExit::Signal(signal) => MissingVersion::Signal(signal),
        }
    }
}

/// Returns the first group of the first match, or the whole match.
fn first_match<'t>(regex: &Regex, text: &'t str) -> Option<&'t str> {
    let captures = regex.captures(text)?;
    Some(captures.get(1).or_else(|| captures.get(0))?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version_of(
        (stdout, stderr): (&str, &str),
        exit: ProcessExit,
        regex: &str,
    ) -> Result<String, MissingVersion> {
        let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
        VersionOutput { stdout, stderr, exit }.find_version(&Regex::new(regex).unwrap())
    }

    #[test]
    fn a_version_is_the_first_group_or_the_whole_match() {
        let numbers = r"\d+(?:\.\d+)+";
        for (text, expected) in [
            ("2.1.330 (Claude Code)\n", "2.1.330"),
            ("codex-cli 0.169.0\n", "0.169.0"),
            ("llm, version 0.36", "0.36"),
        ] {
            let version = version_of((text, "3.0"), ProcessExit::Code(0), numbers);
            assert_eq!(version.as_deref(), Ok(expected), "{text}");
        }
        let grouped = version_of(("release 7b of 2.0", ""), ProcessExit::Code(0), r"release (\w+)");
        assert_eq!(grouped.as_deref(), Ok("7b"));
        let from_stderr = version_of(("", "tool 4.5\n"), ProcessExit::Code(0), numbers);
        assert_eq!(from_stderr.as_deref(), Ok("4.5"));
        let despite_exit_code = version_of(("tool 4.5\n", ""), ProcessExit::Code(1), numbers);
        assert_eq!(despite_exit_code.as_deref(), Ok("4.5"));
    }

    #[test]
    fn each_cause_of_a_missing_version_is_named() {
        let long = "9".repeat(MAX_VERSION_CHARS + 1);
        for (output, exit, expected) in [
            (("", "node 18.0 is too old"), ProcessExit::Code(3), MissingVersion::ExitCode(3)),
            (("", ""), ProcessExit::Signal(11), MissingVersion::Signal(11)),
            ((" \n", ""), ProcessExit::Code(0), MissingVersion::Silent),
            (("unknown option", ""), ProcessExit::Code(0), MissingVersion::Unmatched),
            (("", "unknown option"), ProcessExit::Code(0), MissingVersion::Unmatched),
            ((&*long, ""), ProcessExit::Code(0), MissingVersion::Unprintable),
            (("1\u{1b}[2J", ""), ProcessExit::Code(0), MissingVersion::Unprintable),
        ] {
            assert_eq!(version_of(output, exit, r"\d\S*"), Err(expected), "{output:?}");
        }
    }
}
