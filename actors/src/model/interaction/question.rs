//! Content of a question: its kind, its options and the tool call that it is about.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Id of a request in the protocol of the agent, as text. Numbers and texts stay distinct.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct WireId(pub String);

/// Kind of a question.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "InteractionKind")]
pub enum QuestionKind {
    /// Permission to call a tool.
    ToolPermission,
    /// Permission to change a file, with the proposed change.
    FileApproval,
    /// Choice between options.
    Choice,
    /// Yes or no.
    Confirmation,
    /// Free text.
    TextInput,
    /// Values for the fields of a flat JSON schema.
    Form,
}

impl QuestionKind {
    /// Every kind.
    pub const ALL: &[Self] = &[
        Self::ToolPermission,
        Self::FileApproval,
        Self::Choice,
        Self::Confirmation,
        Self::TextInput,
        Self::Form,
    ];

    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ToolPermission => "tool_permission",
            Self::FileApproval => "file_approval",
            Self::Choice => "choice",
            Self::Confirmation => "confirmation",
            Self::TextInput => "text_input",
            Self::Form => "form",
        }
    }

    /// Parses the published name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == word)
    }

    /// Returns true for a question that is answered by allow or deny.
    #[must_use]
    pub const fn is_permission(self) -> bool {
        matches!(self, Self::ToolPermission | Self::FileApproval)
    }
}

/// Effect of an option of a permission request.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OptionKind {
    /// Allows this call.
    AllowOnce,
    /// Allows this and later calls. The service never selects it, because agents store it beyond the session.
    AllowAlways,
    /// Rejects this call.
    RejectOnce,
    /// Rejects this and later calls.
    RejectAlways,
    /// Another effect.
    Other,
}

/// Option that the agent offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionOption {
    /// Id of the option.
    pub id: String,
    /// Display name of the option.
    pub name: String,
    /// Effect of the option.
    pub kind: OptionKind,
}

/// Tool call that a permission request is about.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallSubject {
    /// Id that the agent gave to the call.
    pub id: String,
    /// Name of the tool, or its kind if the agent does not name it.
    pub tool: String,
    /// Kind of the tool, such as `execute`, `edit` or `fetch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Title of the call as the agent wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Command line, if the call runs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Paths that the call reads or changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Address that the call requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Arguments of the call.
    #[serde(default)]
    pub args: Value,
}

/// Question of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Kind of the question.
    pub kind: QuestionKind,
    /// Question in one sentence.
    pub message: String,
    /// Options that the agent offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<QuestionOption>,
    /// Tool call that the question is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<ToolCallSubject>,
    /// JSON schema of the answer of a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

impl Question {
    /// Returns the size of the question as JSON, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        serde_json::to_vec(self).map_or(usize::MAX, |text| text.len())
    }
}
