//! Writers of A2A 0.3 over JSON-RPC: answers and, for clients, messages.

use serde_json::Value;

use super::DIALECT;
use crate::json_object::ObjectBuilder;
use crate::v1::{
    Message, PushAuthentication, PushConfig, SendResponse, StreamEvent, Task, TaskStatus,
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

/// Writes a push configuration with the id of its task.
#[must_use]
pub fn push_config(config: PushConfig) -> Value {
    let task_id = config.task_id.clone().unwrap_or_default();
    ObjectBuilder::from_field("taskId", task_id)
        .with_field("pushNotificationConfig", push_config_without_task_id(config))
        .into()
}

/// Writes all push configurations of a task.
#[must_use]
pub fn push_configs(configs: Vec<PushConfig>) -> Value {
    configs.into_iter().map(push_config).collect()
}

/// Returns the empty answer: null.
#[must_use]
pub const fn empty_response() -> Value {
    Value::Null
}

/// Writes a push configuration without the id of its task.
pub(super) fn push_config_without_task_id(config: PushConfig) -> ObjectBuilder {
    // The task is named by the object around this one.
    let PushConfig { id, task_id: _, url, token, authentication } = config;
    let authentication = authentication.map(|PushAuthentication { scheme, credentials }| {
        ObjectBuilder::from_field("schemes", vec![scheme])
            .with_optional_field("credentials", credentials)
    });
    ObjectBuilder::from_field("url", url)
        .with_optional_field("id", id)
        .with_optional_field("token", token)
        .with_optional_field("authentication", authentication)
}
