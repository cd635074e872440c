//! The core shapes, as A2A 1.0 has them. What the service says and hears, in any dialect.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

/// Free data beside a shape.
pub type Metadata = Map<String, Value>;

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// Accepted, not begun.
    Submitted,
    /// Under way.
    Working,
    /// Asks for input.
    InputRequired,
    /// Ended well.
    Completed,
    /// Called off.
    Canceled,
    /// Ended badly.
    Failed,
    /// Never begun.
    Rejected,
    /// Asks for credentials.
    AuthRequired,
}

impl TaskState {
    /// Every state.
    pub const ALL: &[Self] = &[
        Self::Submitted,
        Self::Working,
        Self::InputRequired,
        Self::Completed,
        Self::Canceled,
        Self::Failed,
        Self::Rejected,
        Self::AuthRequired,
    ];
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The caller.
    User,
    /// The agent.
    Agent,
}

/// What a part holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Text.
    Text(String),
    /// A file's bytes, in base64 as they travel.
    Raw(String),
    /// Where a file is.
    Url(String),
    /// Any JSON.
    Data(Value),
}

/// A piece of a message or of an artifact.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// What it holds.
    pub content: Content,
    /// The name of its file.
    pub filename: Option<String>,
    /// Its media type.
    pub media_type: Option<String>,
    /// Free data.
    pub metadata: Metadata,
}

impl Part {
    /// A part of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        let content = Content::Text(text.into());
        Self { content, filename: None, media_type: None, metadata: Metadata::new() }
    }
}

/// Something said.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The speaker's own id of it.
    pub message_id: String,
    /// The conversation.
    pub context_id: Option<String>,
    /// The task it is about.
    pub task_id: Option<String>,
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub parts: Vec<Part>,
    /// Free data.
    pub metadata: Metadata,
}

/// Something made.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    /// Its id within the task.
    pub artifact_id: String,
    /// Its name.
    pub name: Option<String>,
    /// What it is made of.
    pub parts: Vec<Part>,
}

/// Where a task is, since when, and what is to be said about it.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskStatus {
    /// Where.
    pub state: TaskState,
    /// A word of the agent, or of the service about a failure.
    pub message: Option<Message>,
    /// Since when.
    pub timestamp: DateTime<Utc>,
}

/// One execution, as callers see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// Its conversation.
    pub context_id: String,
    /// Where it is.
    pub status: TaskStatus,
    /// What was made.
    pub artifacts: Vec<Artifact>,
    /// What was said.
    pub history: Vec<Message>,
    /// Free data.
    pub metadata: Metadata,
}

/// Whether an answer waits for the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Until the task has ended or asks for something.
    ForTheEnd,
    /// Until it is accepted.
    ForAcceptance,
}

/// How much of the history is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// All of it.
    All,
    /// The last so many messages.
    Last(usize),
}

/// A message to an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct SendRequest {
    /// What is said.
    pub message: Message,
    /// Whether to wait.
    pub wait: Wait,
    /// How much history the answer has.
    pub history: History,
    /// Free data of the request.
    pub metadata: Metadata,
}

/// What a card tells about an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    /// Name for people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The agent's own version.
    pub version: String,
    /// Where its JSON-RPC door is.
    pub jsonrpc_url: String,
    /// What it can do: id, name, description, tags.
    pub skills: Vec<(String, String, String, Vec<String>)>,
}
