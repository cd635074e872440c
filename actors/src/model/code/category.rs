//! Categories of errors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Category of an error: who can act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// Temporary condition, such as a network failure or a busy machine; a retry may succeed.
    Transient,
    /// Permanent condition: the request or the configuration must change first.
    Permanent,
    /// Failure of the wrapped agent.
    Agent,
    /// Failure of the supervisor.
    System,
}

impl Category {
    /// Every category.
    pub const ALL: &[Self] = &[Self::Transient, Self::Permanent, Self::Agent, Self::System];

    /// Parses the published name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|category| category.as_str() == word)
    }

    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Permanent => "permanent",
            Self::Agent => "agent",
            Self::System => "system",
        }
    }
}
