//! Writers of A2A 0.3 over HTTP: answers and, for clients, messages.

use serde_json::Value;

use super::{DIALECT, resource_name};
use crate::json_object::{ObjectBuilder, saturating_i32};
use crate::v0_3::write::push_config_without_task_id;
use crate::v1::{ListPage, Message, PushConfig, SendResponse, StreamEvent, Task};

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

/// Writes an event of a stream.
#[must_use]
pub fn event(event: StreamEvent) -> Value {
    DIALECT.write_event(event)
}

/// Writes a page of tasks; 0.3 does not define its shape, so it is that of 1.0.
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

/// Writes a push configuration. A configuration without an id gets the id of its task.
#[must_use]
pub fn push_config(config: PushConfig) -> Value {
    let task_id = config.task_id.clone().unwrap_or_default();
    // The name of a resource must not end with a slash.
    let id = config.id.clone().unwrap_or_else(|| task_id.clone());
    ObjectBuilder::from_field("name", resource_name::push_config_name(&task_id, &id))
        .with_field("pushNotificationConfig", push_config_without_task_id(config))
        .into()
}

/// Writes all push configurations of a task on one page.
#[must_use]
pub fn push_configs(configs: Vec<PushConfig>) -> Value {
    let configs: Vec<_> = configs.into_iter().map(push_config).collect();
    ObjectBuilder::from_field("configs", configs).with_field("nextPageToken", "").into()
}

/// Returns the empty answer: an object without members.
#[must_use]
pub fn empty_response() -> Value {
    ObjectBuilder::default().into()
}
