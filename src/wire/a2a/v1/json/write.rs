//! A2A 1.0: answers on their way out.

use serde_json::Value;

use super::DIALECT;
use crate::wire::a2a::v1::{
    ListPage, PushAuthentication, PushConfig, Reply, StreamEvent, Task, TaskStatus,
};
use crate::wire::fields::{Object, total};

/// The answer to a message.
#[must_use]
pub fn reply(reply: Reply) -> Value {
    DIALECT.reply_out(reply)
}

/// A task.
#[must_use]
pub fn task(task: Task) -> Value {
    DIALECT.task_out(task)
}

/// Where a task is.
#[must_use]
pub fn status(status: TaskStatus) -> Value {
    DIALECT.status_out(status)
}

/// An event of a stream.
#[must_use]
pub fn event(event: StreamEvent) -> Value {
    DIALECT.event_out(event)
}

/// A page of tasks. The token is always there, empty on the last page.
#[must_use]
pub fn page(page: ListPage) -> Value {
    let ListPage { tasks, next_page_token, page_size, total_size } = page;
    let tasks: Vec<_> = tasks.into_iter().map(task).collect();
    Object::of("tasks", tasks)
        .with("nextPageToken", next_page_token)
        .with("pageSize", page_size)
        .with("totalSize", total(total_size))
        .into()
}

/// A push configuration.
#[must_use]
pub fn push(config: PushConfig) -> Value {
    let PushConfig { id, task_id, url, token, authentication } = config;
    let authentication = authentication.map(|PushAuthentication { scheme, credentials }| {
        Object::of("scheme", scheme).some("credentials", credentials)
    });
    Object::of("url", url)
        .some("id", id)
        .some("taskId", task_id)
        .some("token", token)
        .some("authentication", authentication)
        .into()
}

/// All push configurations of a task, on one page.
#[must_use]
pub fn pushes(configs: Vec<PushConfig>) -> Value {
    let configs: Vec<_> = configs.into_iter().map(push).collect();
    Object::of("configs", configs).with("nextPageToken", "").into()
}

/// What is told when there is nothing to tell.
#[must_use]
pub fn nothing() -> Value {
    Object::default().into()
}
