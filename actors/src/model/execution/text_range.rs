//! Ranges of the redacted text of an execution.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AttemptId;

/// Text channel of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TextChannel {
    /// Input, redacted.
    Input,
    /// Standard output of the program.
    Stdout,
    /// Standard error of the program.
    Stderr,
    /// Answer, if it differs from standard output.
    Answer,
    /// Content of messages and artifacts of the agent.
    Parts,
    /// Steps of a cognitive agent.
    Steps,
}

/// Range of redacted text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextRange {
    /// Attempt that wrote the text.
    pub attempt_id: AttemptId,
    /// Channel of the text.
    pub channel: TextChannel,
    /// Offset of the first byte.
    pub from: u64,
    /// Offset of the byte after the last one.
    pub to: u64,
}

impl TextChannel {
    /// Every channel.
    pub const ALL: &[Self] =
        &[Self::Input, Self::Stdout, Self::Stderr, Self::Answer, Self::Parts, Self::Steps];

    /// Parses the published name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|channel| channel.as_str() == word)
    }

    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Answer => "answer",
            Self::Parts => "parts",
            Self::Steps => "steps",
        }
    }
}
