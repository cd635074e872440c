//! Failures, in a form that may be shown to the caller.

use std::fmt;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::code::{Category, Code};

/// Failure: a stable code and one clear sentence.
///
/// The sentence contains no input, no secret and no path of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// Stable error code.
    pub code: Code,
    /// Explanation as one clause in lower case, without a full stop.
    pub message: String,
    /// Time before which a retry would fail again; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
    /// Number of times that the program itself retried a request to its model before the failure, as far as the program
    /// reports retries.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub own_retries: u32,
    /// Last lines of the program's output, redacted. They are reported only if a deadline ended the program.
    #[serde(skip)]
    pub last_output: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Failure {
    /// Creates a failure with its sentence.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let (message, last_output) = (message.into(), String::new());
        Self { code, message, until: None, own_retries: 0, last_output }
    }

    /// Returns the failure with the time before which a retry would fail again.
    #[must_use]
    pub fn with_until(self, time: DateTime<Utc>) -> Self {
        Self { until: Some(time), ..self }
    }

    /// Returns the category of the error.
    #[must_use]
    pub const fn category(&self) -> Category {
        self.code.category()
    }

    /// Returns true if a repetition fails in the same way.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        self.category() == Category::Permanent
    }

    /// Returns the hint for the reader.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        self.code.hint()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
