//! Success criteria of a program's attempts, and the classification of its failures.

use std::path::PathBuf;
use std::time::Duration;

use regex::Regex;
use serde_json::Value;

/// Success criteria of an attempt.
#[derive(Debug, Clone, Default)]
pub struct SuccessCriteria {
    /// Exit codes that mean success.
    pub exit_codes: Vec<i32>,
    /// True if an answer that consists of white space is a failure.
    pub require_output: bool,
    /// Pattern whose match in the answer or in standard error makes the attempt a failure.
    pub fail_regex: Option<Regex>,
    /// Location of the answer in a JSON document on the output, as an RFC 6901 pointer.
    pub json_pointer: Option<String>,
    /// Path template of a file that must exist and must not be empty; relative to the working folder of the program or
    /// to the execution's own folder.
    pub artifact_path: Option<String>,
    /// JSON Schema that the answer must match.
    pub answer_schema: Option<Value>,
    /// Command that verifies the result of a successful attempt.
    pub check: Option<Box<CheckCommand>>,
}

/// Format in which a program reports its usage within other output.
#[derive(Debug, Clone, Default)]
pub struct UsagePattern {
    /// Pattern whose matches in the outputs count as usage. Its named groups capture numbers, and the names of the
    /// groups are the names of the counters.
    pub regex: Option<Regex>,
}

/// Check command. It runs in the same sandbox as the program, and exit code 0 means success.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckCommand {
    /// Absolute path of the executable.
    pub command: PathBuf,
    /// Templates of the arguments, in order.
    pub args: Vec<String>,
    /// Longest run time of the command.
    pub timeout: Duration,
}

/// Conditions that identify one kind of failure. One matching condition is enough.
#[derive(Debug, Clone, Default)]
pub struct FailureMatchers {
    /// HTTP status codes with which the service behind the program answered.
    pub http_statuses: Vec<u16>,
    /// Exit codes.
    pub exit_codes: Vec<i32>,
    /// Pattern that matches the answer, the output or standard error.
    pub regex: Option<Regex>,
}

/// Classification of the failures of a program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FailureRules {
    /// Conditions of a transient failure.
    pub transient: FailureMatchers,
    /// Conditions of a permanent failure.
    pub permanent: FailureMatchers,
    /// Conditions of an exhausted quota.
    pub quota: FailureMatchers,
    /// Retries of requests by the program itself.
    pub program_retry_rules: ProgramRetryRules,
}

/// Format in which a program reports failed requests to its model, which the program may retry itself.
#[derive(Debug, Clone, Default)]
pub struct ProgramRetryRules {
    /// Pattern that matches one output line per failed request, for programs whose events do not report them.
    pub failed_request_regex: Option<Regex>,
    /// Number of failed requests after which the attempt is stopped.
    pub max_failed_requests: Option<u32>,
}

impl PartialEq for ProgramRetryRules {
    fn eq(&self, other: &Self) -> bool {
        let Self { failed_request_regex: regex, max_failed_requests: max } = self;
        pattern_sources(regex) == pattern_sources(&other.failed_request_regex)
            && *max == other.max_failed_requests
    }
}

impl FailureRules {
    /// Returns true if a condition uses an HTTP status code.
    #[must_use]
    pub fn uses_http_status(&self) -> bool {
        let Self { transient, permanent, quota, .. } = self;
        [transient, permanent, quota].iter().any(|matchers| !matchers.http_statuses.is_empty())
    }
}

impl PartialEq for UsagePattern {
    fn eq(&self, other: &Self) -> bool {
        pattern_sources(&self.regex) == pattern_sources(&other.regex)
    }
}

impl PartialEq for SuccessCriteria {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            exit_codes,
            require_output,
            fail_regex,
            json_pointer,
            artifact_path: artifact,
            answer_schema: schema,
            check,
        } = self;
        *exit_codes == other.exit_codes
            && *require_output == other.require_output
            && pattern_sources(fail_regex) == pattern_sources(&other.fail_regex)
            && *json_pointer == other.json_pointer
            && *artifact == other.artifact_path
            && *schema == other.answer_schema
            && *check == other.check
    }
}

impl PartialEq for FailureMatchers {
    fn eq(&self, other: &Self) -> bool {
        let Self { http_statuses: status, exit_codes, regex } = self;
        *status == other.http_statuses
            && *exit_codes == other.exit_codes
            && pattern_sources(regex) == pattern_sources(&other.regex)
    }
}

/// Returns the source texts of the patterns.
pub(in crate::model) fn pattern_sources<'r>(
    patterns: impl IntoIterator<Item = &'r Regex>,
) -> Vec<&'r str> {
    patterns.into_iter().map(Regex::as_str).collect()
}
