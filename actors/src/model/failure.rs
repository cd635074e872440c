//! Why something did not work, in a form that may be shown to the caller.

use std::fmt;

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
}

impl Failure {
    /// A failure with its sentence.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
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
