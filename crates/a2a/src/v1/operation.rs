//! Requests of the protocol and their answers.

use chrono::{DateTime, Utc};

use super::{Message, Metadata, Task, TaskState};

/// Time at which the service answers a message: whether it waits for the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendMode {
    /// After the task has ended or waits for its caller.
    Blocking,
    /// As soon as the task is accepted.
    NonBlocking,
}

/// Requested length of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryLength {
    /// The whole history.
    All,
    /// Number of most recent messages.
    Last(usize),
}

/// Request that sends a message to an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct SendRequest {
    /// Message to send.
    pub message: Message,
    /// Whether the answer waits for the task.
    pub send_mode: SendMode,
    /// Length of the history in the answer.
    pub history_length: HistoryLength,
    /// Media types that the caller can read; an empty list allows all.
    pub accepted_output_modes: Vec<String>,
    /// Push configuration for the task.
    pub push_config: Option<PushConfig>,
    /// Free-form metadata of the request.
    pub metadata: Metadata,
}

/// Request for one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskQuery {
    /// Id of the task.
    pub id: String,
    /// Length of the history in the answer.
    pub history_length: HistoryLength,
}

/// Request for a list of tasks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ListRequest {
    /// Conversation of the tasks; absent means any.
    pub context_id: Option<String>,
    /// State of the tasks; absent means any.
    pub state: Option<TaskState>,
    /// Number of tasks on a page, 1 to 100.
    pub page_size: Option<u32>,
    /// Page token from the previous page.
    pub page_token: Option<String>,
    /// Number of history messages of each task; absent means none.
    pub history_length: Option<usize>,
    /// Earliest time of the last status change of the tasks.
    pub changed_since: Option<DateTime<Utc>>,
    /// True if the answer includes artifacts.
    pub include_artifacts: bool,
}

/// Page of tasks, most recent status change first.
#[derive(Debug, Clone, PartialEq)]
pub struct ListPage {
    /// Tasks on this page.
    pub tasks: Vec<Task>,
    /// Token of the next page; empty on the last page.
    pub next_page_token: String,
    /// Maximum number of tasks on a page.
    pub page_size: u32,
    /// Number of tasks on all pages.
    pub total_size: u64,
}

/// Address for push notifications about a task, and the credentials for that address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushConfig {
    /// Id within the task; equal to the id of the task if the caller sends none.
    pub id: Option<String>,
    /// Id of the task; absent in a configuration that is part of a message.
    pub task_id: Option<String>,
    /// Address that receives the notifications.
    pub url: String,
    /// Token that the service sends along, with which the receiver can check the notification.
    pub token: Option<String>,
    /// Credentials for the `Authorization` header.
    pub authentication: Option<PushAuthentication>,
}

/// Credentials of a push notification.
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

/// Request for one push configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushConfigQuery {
    /// Id of the task.
    pub task_id: String,
    /// Id of the configuration; absent means the one with the id of the task.
    pub id: Option<String>,
}
