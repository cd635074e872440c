//! Why something did not work, in a form that may be shown to the caller.

use std::fmt;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::code::{Category, Code};

/// A failure: a stable code and one clear sentence.
///
/// The sentence holds no input, no secret and no path of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The stable code.
    pub code: Code,
    /// One clause in lower case, without a full stop.
    pub message: String,
    /// Before this time it would fail again; `None` when nobody said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
}

impl Failure {
    /// A failure with its sentence.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), until: None }
    }

    /// The same, which will not pass before this time.
    #[must_use]
    pub fn until(self, time: DateTime<Utc>) -> Self {
        Self { until: Some(time), ..self }
    }

    /// Whose turn it is.
    #[must_use]
    pub const fn category(&self) -> Category {
        self.code.category()
    }

    /// What the reader can do.
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
