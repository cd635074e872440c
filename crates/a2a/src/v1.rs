//! Core shapes of A2A 1.0. The service uses these types for messages in every dialect.

mod card;
mod operation;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

pub use card::{
    Binding, Card, CardCapabilities, CardDetails, CardSecurity, Interface, ProtocolVersion,
    ProviderOrganization, Skill,
};
pub use operation::{
    HistoryLength, ListPage, ListRequest, PushAuthentication, PushConfig, PushConfigQuery,
    SendMode, SendRequest, TaskQuery,
};

/// Free-form metadata of a shape.
pub type Metadata = Map<String, Value>;

/// State of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// Accepted, not started.
    Submitted,
    /// Running.
    Working,
    /// Waits for input of the caller.
    InputRequired,
    /// Completed successfully.
    Completed,
    /// Canceled.
    Canceled,
    /// Failed.
    Failed,
    /// Rejected before the start.
    Rejected,
    /// Waits for credentials of the caller.
    AuthRequired,
}

impl TaskState {
    /// True if a task in this state never changes again.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Canceled | Self::Failed | Self::Rejected => true,
            Self::Submitted | Self::Working | Self::InputRequired | Self::AuthRequired => false,
        }
    }
}

impl TaskState {
    /// All states.
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

/// Sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The caller.
    User,
    /// The agent.
    Agent,
}

/// Content of a part.
#[derive(Debug, Clone, PartialEq)]
pub enum PartContent {
    /// Text.
    Text(String),
    /// Bytes of a file, in base64 as on the wire.
    Raw(String),
    /// Address of a file.
    Url(String),
    /// Any JSON value.
    Data(Value),
}

/// Piece of a message or of an artifact.
#[derive(Debug, Clone, PartialEq)]
pub struct A2aPart {
    /// Content of the part.
    pub content: PartContent,
    /// Name of the file in the part.
    pub filename: Option<String>,
    /// Media type of the content.
    pub media_type: Option<String>,
    /// Free-form metadata.
    pub metadata: Metadata,
}

impl A2aPart {
    /// Creates a part with this content and without further fields.
    #[must_use]
    pub fn from_content(content: PartContent) -> Self {
        Self { content, filename: None, media_type: None, metadata: Metadata::new() }
    }

    /// Creates a part of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::from_content(PartContent::Text(text.into()))
    }
}

/// Message of a caller or of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Id of the message, chosen by its sender.
    pub message_id: String,
    /// Id of the conversation.
    pub context_id: Option<String>,
    /// Id of the task to which the message belongs.
    pub task_id: Option<String>,
    /// Sender of the message.
    pub role: Role,
    /// Content of the message.
    pub parts: Vec<A2aPart>,
    /// Free-form metadata.
    pub metadata: Metadata,
    /// Extensions that the message uses.
    pub extensions: Vec<String>,
    /// Tasks to which the message refers.
    pub reference_task_ids: Vec<String>,
}

/// Output of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    /// Id of the artifact within the task.
    pub artifact_id: String,
    /// Name of the artifact.
    pub name: Option<String>,
    /// Description of the artifact.
    pub description: Option<String>,
    /// Content of the artifact.
    pub parts: Vec<A2aPart>,
    /// Free-form metadata.
    pub metadata: Metadata,
    /// Extensions that the artifact uses.
    pub extensions: Vec<String>,
}

/// Status of a task: its state, the time of the last change and an optional message.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskStatus {
    /// State of the task.
    pub state: TaskState,
    /// Message of the agent, or of the service about a failure.
    pub message: Option<Message>,
    /// Time of the last change of the state.
    pub timestamp: DateTime<Utc>,
}

/// One execution, as callers see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Id of the task.
    pub id: String,
    /// Id of the conversation.
    pub context_id: String,
    /// Status of the task.
    pub status: TaskStatus,
    /// Output of the task.
    pub artifacts: Vec<Artifact>,
    /// Messages of the task.
    pub history: Vec<Message>,
    /// Free-form metadata.
    pub metadata: Metadata,
}

/// Event: the status of a task has changed.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusUpdate {
    /// Id of the task.
    pub task_id: String,
    /// Id of the conversation.
    pub context_id: String,
    /// New status of the task.
    pub status: TaskStatus,
    /// True if the stream ends with this event; 1.0 has no field for it and ends the stream instead.
    pub is_final: bool,
    /// Free-form metadata.
    pub metadata: Metadata,
}

/// Event: a task has produced an artifact or a piece of one.
#[derive(Debug, Clone, PartialEq)]
pub struct ArtifactUpdate {
    /// Id of the task.
    pub task_id: String,
    /// Id of the conversation.
    pub context_id: String,
    /// The artifact, or the new piece of it.
    pub artifact: Artifact,
    /// True if the parts are to be appended to those of earlier events.
    pub append: bool,
    /// True if this is the last piece of the artifact.
    pub last_chunk: bool,
    /// Free-form metadata.
    pub metadata: Metadata,
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEvent {
    /// The whole task; always the first event.
    Task(Task),
    /// Answer without a task; then the only event.
    Message(Message),
    /// Change of the status.
    Status(StatusUpdate),
    /// New artifact or a piece of one.
    Artifact(ArtifactUpdate),
}

/// Answer to a message.
#[derive(Debug, Clone, PartialEq)]
pub enum SendResponse {
    /// A task.
    Task(Task),
    /// Message without a task.
    Message(Message),
}
