//! The core shapes, as A2A 1.0 has them. What the service says and hears, in any dialect.

mod card;
pub mod json;
mod operation;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

pub use card::{Binding, Card, CardSecurity, CardSkill, Interface, Version};
pub use operation::{
    History, ListPage, ListRequest, PushAuthentication, PushConfig, PushQuery, SendRequest,
    TaskQuery, Wait,
};

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
    /// Whether nothing changes any more.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Canceled | Self::Failed | Self::Rejected => true,
            Self::Submitted | Self::Working | Self::InputRequired | Self::AuthRequired => false,
        }
    }
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
    /// A part that holds this and says nothing more about it.
    #[must_use]
    pub fn of(content: Content) -> Self {
        Self { content, filename: None, media_type: None, metadata: Metadata::new() }
    }

    /// A part of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(Content::Text(text.into()))
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
    /// Extensions that it makes use of.
    pub extensions: Vec<String>,
    /// Tasks that it refers to.
    pub reference_task_ids: Vec<String>,
}

/// Something made.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    /// Its id within the task.
    pub artifact_id: String,
    /// Its name.
    pub name: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// What it is made of.
    pub parts: Vec<Part>,
    /// Free data.
    pub metadata: Metadata,
    /// Extensions that it makes use of.
    pub extensions: Vec<String>,
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

/// A task is somewhere else now.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusUpdate {
    /// Which task.
    pub task_id: String,
    /// Its conversation.
    pub context_id: String,
    /// Where it is.
    pub status: TaskStatus,
    /// Whether the stream ends with this; 1.0 says so by ending it.
    pub is_final: bool,
    /// Free data.
    pub metadata: Metadata,
}

/// Something was made, or a piece of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ArtifactUpdate {
    /// Which task.
    pub task_id: String,
    /// Its conversation.
    pub context_id: String,
    /// What was made.
    pub artifact: Artifact,
    /// Whether its parts follow those that came before.
    pub append: bool,
    /// Whether nothing more of it will come.
    pub last_chunk: bool,
    /// Free data.
    pub metadata: Metadata,
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEvent {
    /// The whole task; always first.
    Task(Task),
    /// An answer without a task; then the only one.
    Message(Message),
    /// Somewhere else now.
    Status(StatusUpdate),
    /// Something made.
    Artifact(ArtifactUpdate),
}

/// What a message is answered with.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// A task.
    Task(Task),
    /// A word, without a task.
    Message(Message),
}
