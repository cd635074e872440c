//! When an attempt of a program is a success, and what its failures mean.

use std::path::PathBuf;
use std::time::Duration;

use regex::Regex;
use serde_json::Value;

/// When an attempt counts as a success.
#[derive(Debug, Clone, Default)]
pub struct SuccessContract {
    /// Exit codes of a success.
    pub exit_codes: Vec<i32>,
    /// Whether an answer of white space alone is a failure.
    pub require_output: bool,
    /// A match in the answer or in standard error makes a failure of it.
    pub fail_regex: Option<Regex>,
    /// Where the answer stands in a JSON document on the output, as an RFC 6901 pointer.
    pub json_pointer: Option<String>,
    /// A file that has to be there and not empty, as a template of its path: below the folder that
    /// the program works in, or below the execution's own.
    pub artifact: Option<String>,
    /// The JSON Schema that the answer has to fit.
    pub schema: Option<Value>,
    /// What is run after a success, to see whether it is one.
    pub check: Option<Box<Check>>,
}

/// A command that is held as the program was, and ends with 0 where all is well.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Absolute path of the executable.
    pub command: PathBuf,
    /// Templates of its arguments, in order.
    pub args: Vec<String>,
    /// How long it may take.
    pub limit: Duration,
}

/// How one kind of failure is known. Any of them is enough.
#[derive(Debug, Clone, Default)]
pub struct Signs {
    /// HTTP statuses with which what is behind the program has answered it.
    pub status: Vec<u16>,
    /// Exit codes.
    pub exit_codes: Vec<i32>,
    /// A match in the answer, in the output or in standard error.
    pub regex: Option<Regex>,
}

/// What the failures of a program mean.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FailureContract {
    /// They may pass by themselves.
    pub transient: Signs,
    /// They will not.
    pub permanent: Signs,
    /// The account has used up what it may.
    pub quota: Signs,
}

impl FailureContract {
    /// Whether it asks for a status at all.
    #[must_use]
    pub fn has_status(&self) -> bool {
        let Self { transient, permanent, quota } = self;
        [transient, permanent, quota].iter().any(|signs| !signs.status.is_empty())
    }
}

impl PartialEq for SuccessContract {
    fn eq(&self, other: &Self) -> bool {
        let Self { exit_codes, require_output, fail_regex, json_pointer, artifact, schema, check } =
            self;
        *exit_codes == other.exit_codes
            && *require_output == other.require_output
            && written(fail_regex) == written(&other.fail_regex)
            && *json_pointer == other.json_pointer
            && *artifact == other.artifact
            && *schema == other.schema
            && *check == other.check
    }
}

impl PartialEq for Signs {
    fn eq(&self, other: &Self) -> bool {
        let Self { status, exit_codes, regex } = self;
        *status == other.status
            && *exit_codes == other.exit_codes
            && written(regex) == written(&other.regex)
    }
}

/// Expressions as they are written.
pub(super) fn written<'r>(expressions: impl IntoIterator<Item = &'r Regex>) -> Vec<&'r str> {
    expressions.into_iter().map(Regex::as_str).collect()
}
