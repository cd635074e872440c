//! Writers of A2A 1.0: answers and, for clients, messages.

use serde_json::Value;

use super::DIALECT;
use crate::json_object::{ObjectBuilder, total};
use crate::v1::{
    ListPage, Message, PushAuthentication, PushConfig, SendResponse, StreamEvent, Task, TaskStatus,
};

/// Writes a message.
#[must_use]
pub fn message(message: Message) -> Value {
    DIALECT.message_out(message)
}

/// Writes the answer to a message.
#[must_use]
pub fn reply(reply: SendResponse) -> Value {
    DIALECT.reply_out(reply)
}

/// Writes a task.
#[must_use]
pub fn task(task: Task) -> Value {
    DIALECT.task_out(task)
}

/// Writes the status of a task.
#[must_use]
pub fn status(status: TaskStatus) -> Value {
    DIALECT.status_out(status)
}

/// Writes an event of a stream.
#[must_use]
pub fn event(event: StreamEvent) -> Value {
    DIALECT.event_out(event)
}

/// Writes a page of tasks. The page token is always present and is empty on the last page.
#[must_use]
pub fn page(page: ListPage) -> Value {
    let ListPage { tasks, next_page_token, page_size, total_size } = page;
    let tasks: Vec<_> = tasks.into_iter().map(task).collect();
    ObjectBuilder::of("tasks", tasks)
        .with("nextPageToken", next_page_token)
        .with("pageSize", page_size)
        .with("totalSize", total(total_size))
        .into()
}

/// Writes a push configuration.
#[must_use]
pub fn push(config: PushConfig) -> Value {
    let PushConfig { id, task_id, url, token, authentication } = config;
    let authentication = authentication.map(|PushAuthentication { scheme, credentials }| {
        ObjectBuilder::of("scheme", scheme).some("credentials", credentials)
    });
    ObjectBuilder::of("url", url)
        .some("id", id)
        .some("taskId", task_id)
        .some("token", token)
        .some("authentication", authentication)
        .into()
}

/// Writes all push configurations of a task on one page.
#[must_use]
pub fn push_configs(configs: Vec<PushConfig>) -> Value {
    let configs: Vec<_> = configs.into_iter().map(push).collect();
    // A task has few configurations, so all are on one page; clients read the empty token as its end.
    ObjectBuilder::of("configs", configs).with("nextPageToken", "").into()
}

/// Returns the empty answer: an object without members.
#[must_use]
pub fn empty_response() -> Value {
    ObjectBuilder::default().into()
}
