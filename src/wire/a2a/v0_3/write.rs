//! A2A 0.3 on JSON-RPC: answers on their way out.

use serde_json::Value;

use super::DIALECT;
use crate::wire::a2a::v1::{PushAuthentication, PushConfig, Reply, StreamEvent, Task, TaskStatus};
use crate::wire::fields::Object;

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

/// A push configuration.
#[must_use]
pub fn push(config: PushConfig) -> Value {
    let task = config.task_id.clone().unwrap_or_default();
    Object::of("taskId", task).with("pushNotificationConfig", push_alone(config)).into()
}

/// All push configurations of a task.
#[must_use]
pub fn pushes(configs: Vec<PushConfig>) -> Value {
    configs.into_iter().map(push).collect()
}

/// What is told when there is nothing to tell.
#[must_use]
pub const fn nothing() -> Value {
    Value::Null
}

/// A push configuration without its task.
pub(super) fn push_alone(config: PushConfig) -> Object {
    let PushConfig { id, task_id: _, url, token, authentication } = config;
    let authentication = authentication.map(|PushAuthentication { scheme, credentials }| {
        Object::of("schemes", vec![scheme]).some("credentials", credentials)
    });
    Object::of("url", url)
        .some("id", id)
        .some("token", token)
        .some("authentication", authentication)
}
