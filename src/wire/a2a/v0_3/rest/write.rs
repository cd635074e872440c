//! A2A 0.3 over HTTP: answers on their way out.

use serde_json::Value;

use super::{DIALECT, name};
use crate::wire::a2a::v0_3::write::push_alone;
use crate::wire::a2a::v1::{ListPage, PushConfig, Reply, StreamEvent, Task};
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

/// An event of a stream.
#[must_use]
pub fn event(event: StreamEvent) -> Value {
    DIALECT.event_out(event)
}

/// A page of tasks; 0.3 does not say what it looks like, so it is as in 1.0.
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

/// A push configuration. Without an id of its own it has its task's.
#[must_use]
pub fn push(config: PushConfig) -> Value {
    let task = config.task_id.clone().unwrap_or_default();
    let id = config.id.clone().unwrap_or_else(|| task.clone());
    Object::of("name", name::push(&task, &id))
        .with("pushNotificationConfig", push_alone(config))
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
