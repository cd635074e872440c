//! Answers to interactions and their sources.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::InteractionState;

/// Answer to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum AnswerValue {
    /// Allows the tool call once.
    Allow,
    /// Denies the tool call.
    Deny {
        /// Reason for the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Selects an option of a choice by its id.
    Option {
        /// Id of the option.
        id: String,
    },
    /// Free text.
    Text {
        /// Text of the answer.
        text: String,
    },
    /// Values of a form.
    Form {
        /// Object with a value for each field.
        values: Value,
    },
    /// Declines a question that is not about a tool call.
    Decline,
}

impl AnswerValue {
    /// Returns the word for the answer, without its text.
    #[must_use]
    pub const fn kind_name(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny { .. } => "deny",
            Self::Option { .. } => "option",
            Self::Text { .. } => "text",
            Self::Form { .. } => "form",
            Self::Decline => "decline",
        }
    }
}

/// Origin of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "source", rename_all = "kebab-case")]
pub enum AnswerSource {
    /// A person or a program with a token.
    Principal {
        /// Display name of the principal.
        name: String,
        /// Interface of the answer, such as `api` or `a2a`.
        channel: String,
        /// Id of the message that contained the answer. The same message again answers nothing else.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// A rule of the permission policy.
    Rule {
        /// Position of the rule in the configuration, or its word.
        rule: String,
    },
    /// The timeout of the interaction.
    Timeout,
    /// The cancellation of the turn.
    Cancel,
    /// The end of the process.
    ProcessEnd,
    /// The agent itself.
    Agent,
}

/// Answer with its source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InteractionAnswer {
    /// Answer; `None` if the interaction ended without one.
    pub value: Option<AnswerValue>,
    /// Origin of the answer or of the end.
    pub by: AnswerSource,
}

/// End of an interaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InteractionEnd {
    /// State after the end; never open.
    pub state: InteractionState,
    /// Answer and its source.
    pub answer: InteractionAnswer,
    /// Time of the end.
    pub at: DateTime<Utc>,
}
