//! Writers of A2A 1.0: answers and, for clients, messages.

use serde_json::Value;

use super::DIALECT;
use crate::json_object::{ObjectBuilder, saturating_i32};
use crate::v1::{
    ListPage, Message, PushAuthentication, PushConfig, SendResponse, StreamEvent, Task, TaskStatus,
};

/// Writes a message.
#[must_use]
pub fn message(message: Message) -> Value {
    DIALECT.write_message(message)
}

/// Writes the answer to a message.
#[must_use]
pub fn send_response(reply: SendResponse) -> Value {
    DIALECT.write_send_response(reply)
}

/// Writes a task.
#[must_use]
pub fn task(task: Task) -> Value {
    DIALECT.write_task(task)
}

/// Writes the status of a task.
#[must_use]
pub fn status(status: TaskStatus) -> Value {
    DIALECT.write_status(status)
}

/// Writes an event of a stream.
#[must_use]
pub fn event(event: StreamEvent) -> Value {
    DIALECT.write_event(event)
}

/// Writes a page of tasks. The page token is always present and is empty on the last page.
#[must_use]
pub fn page(page: ListPage) -> Value {
    let ListPage { tasks, next_page_token, page_size, total_size } = page;
    let tasks: Vec<_> = tasks.into_iter().map(task).collect();
    ObjectBuilder::from_field("tasks", tasks)
        .with_field("nextPageToken", next_page_token)
        .with_field("pageSize", page_size)
        .with_field("totalSize", saturating_i32(total_size))
        .into()
}

/// Writes a push configuration.
#[must_use]
pub fn push_config(config: PushConfig) -> Value {
    let PushConfig { id, task_id, url, token, authentication } = config;
    let authentication = authentication.map(|PushAuthentication { scheme, credentials }| {
        ObjectBuilder::from_field("scheme", scheme).with_optional_field("credentials", credentials)
    });
    ObjectBuilder::from_field("url", url)
        .with_optional_field("id", id)
        .with_optional_field("taskId", task_id)
        .with_optional_field("token", token)
        .with_optional_field("authentication", authentication)
        .into()
}

/// Writes all push configurations of a task on one page.
#[must_use]
pub fn push_configs(configs: Vec<PushConfig>) -> Value {
    let configs: Vec<_> = configs.into_iter().map(push_config).collect();
    // A task has few configurations, so all are on one page; clients read the empty token as its end.
    ObjectBuilder::from_field("configs", configs).with_field("nextPageToken", "").into()
}

/// Returns the empty answer: an object without members.
#[must_use]
pub fn empty_response() -> Value {
    ObjectBuilder::default().into()
}
