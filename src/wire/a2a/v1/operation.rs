//! What can be asked for, and how it is answered.

use chrono::{DateTime, Utc};

use super::{Message, Metadata, Task, TaskState};

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
    /// Media types that the caller can read; any when empty.
    pub accepted_output_modes: Vec<String>,
    /// Where to tell about the task.
    pub push: Option<PushConfig>,
    /// Free data of the request.
    pub metadata: Metadata,
}

/// Which task is meant, and how much of it is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskQuery {
    /// Its id.
    pub id: String,
    /// How much history.
    pub history: History,
}

/// Which tasks to list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ListRequest {
    /// Of this conversation only.
    pub context_id: Option<String>,
    /// In this state only.
    pub state: Option<TaskState>,
    /// Tasks on a page, 1 to 100.
    pub page_size: Option<u32>,
    /// Where the last page ended.
    pub page_token: Option<String>,
    /// How many messages of each task's history; none when not said.
    pub history_length: Option<usize>,
    /// Only tasks whose status changed at this time or later.
    pub changed_since: Option<DateTime<Utc>>,
    /// Whether artifacts are wanted.
    pub include_artifacts: bool,
}

/// A page of tasks, the one whose status changed last first.
#[derive(Debug, Clone, PartialEq)]
pub struct ListPage {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// Where the next page begins; empty on the last.
    pub next_page_token: String,
    /// Tasks on a page.
    pub page_size: u32,
    /// Tasks on all pages.
    pub total_size: u64,
}

/// Where to tell about a task, and how to prove who tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushConfig {
    /// Its id within the task; the task's id when the caller names none.
    pub id: Option<String>,
    /// The task; not known while it is part of a message.
    pub task_id: Option<String>,
    /// The address.
    pub url: String,
    /// Sent along, so that the receiver knows it is meant.
    pub token: Option<String>,
    /// Sent as `Authorization`.
    pub authentication: Option<PushAuthentication>,
}

/// Credentials of a push.
#[derive(Clone, PartialEq, Eq)]
pub struct PushAuthentication {
    /// The scheme, as in `Authorization: <scheme> <credentials>`.
    pub scheme: String,
    /// The credentials.
    pub credentials: Option<String>,
}

impl std::fmt::Debug for PushAuthentication {
    /// Hides the credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PushAuthentication({})", self.scheme)
    }
}

/// Which push configuration is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushQuery {
    /// The task.
    pub task_id: String,
    /// The configuration; the task's own when not said.
    pub id: Option<String>,
}
