//! Readers of A2A 0.3 over HTTP: bodies, queries and, for clients, answers.
//!
//! A body that is empty or null reads as a body without fields. [`crate::add_path_params`] adds the
//! ids of the path beforehand: `id` for a task, `taskId` and `id` for a push configuration.

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::{DIALECT, resource_name};
use crate::dialect;
use crate::json_object::document::parse_document;
use crate::json_object::{ObjectFields, invalid_params};
use crate::v1::{
    HistoryLength, ListRequest, PushConfig, PushConfigQuery, SendMode, SendRequest, SendResponse,
    StreamEvent, Task, TaskQuery,
};

/// Parses a body as JSON; an empty body is null.
///
/// # Errors
/// `malformed-json`.
pub fn parse_body(bytes: &[u8]) -> Result<Value, Failure> {
    if bytes.trim_ascii().is_empty() {
        return Ok(Value::Null);
    }
    parse_document(bytes)
}

/// Reads the body of `message:send` and `message:stream`.
///
/// Without a configuration, the answer waits for the end of the task. With a configuration, the answer waits only if
/// `blocking` is true, because clients omit `blocking` when it is false. For the same reason a history length of
/// zero means the whole history.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn send_request(body: Value) -> Result<SendRequest, Failure> {
    let mut fields = ObjectFields::from_value(body)?;
    // The `.proto` file of 0.3 names the message `request`, the text of the specification `message`.
    let message = match fields.take_object("request")? {
        None => fields.take_required_object("message")?,
        Some(message) => message,
    };
    if message.contains("parts") && !message.contains("content") {
        let text = "a message of 0.3 has `content`; for 1.0 send the header `A2A-Version: 1.0`";
        return Err(invalid_params(text));
    }
    let configuration = fields.take_object("configuration")?;
    let has_configuration = configuration.is_some();
    let mut configuration = configuration.unwrap_or_default();
    // The `.proto` file and the specification name this field differently too.
    let push_fields = match configuration.take_object("pushNotification")? {
        None => configuration.take_object("pushNotificationConfig")?,
        push => push,
    };
    let is_blocking = dialect::read_blocking(&mut configuration)?.unwrap_or(!has_configuration);
    let history_length = match dialect::read_history_length(&mut configuration)? {
        HistoryLength::Last(0) => HistoryLength::All,
        history @ (HistoryLength::All | HistoryLength::Last(_)) => history,
    };
    Ok(SendRequest {
        message: DIALECT.read_message(message)?,
        send_mode: if is_blocking { SendMode::Blocking } else { SendMode::NonBlocking },
        history_length,
        accepted_output_modes: configuration.take_text_list("acceptedOutputModes")?,
        push_config: push_fields.map(dialect::read_push_config).transpose()?,
        metadata: fields.take_json_map("metadata")?,
    })
}

/// Reads the query of a task, with `id` from the path.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn task_query(query: Value) -> Result<TaskQuery, Failure> {
    dialect::read_task_query(query)
}

/// Reads the query of a list of tasks; 0.3 does not define its fields, so they are those of 1.0.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn list_request(query: Value) -> Result<ListRequest, Failure> {
    dialect::read_list_request(&DIALECT, query)
}

/// Reads the body of `:cancel`, with `id` from the path, and returns the id of the task.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn cancel_request(body: Value) -> Result<String, Failure> {
    dialect::read_task_id(body)
}

/// Reads the body of `:subscribe`, with `id` from the path, and returns the id of the task.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn subscribe_request(body: Value) -> Result<String, Failure> {
    dialect::read_task_id(body)
}

/// Reads the body that registers a push configuration, with `taskId` from the path: the configuration itself, or a
/// configuration wrapped with the name of its parent.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_set_request(body: Value) -> Result<PushConfig, Failure> {
    let mut fields = ObjectFields::from_value(body)?;
    let task_id = fields.take_required_text("taskId")?;
    let outer_id = check_task_and_read_config_id(&mut fields, &task_id)?;
    let config_id = fields.take_non_empty_text("configId")?;
    let mut fields = match fields.take_object("config")? {
        Some(config) => config,
        None => fields,
    };
    let inner_id = check_task_and_read_config_id(&mut fields, &task_id)?;
    let config = dialect::read_push_config(fields.take_required_object("pushNotificationConfig")?)?;
    // Clients put the id in any of these places; the innermost one is the most specific.
    let id = config.id.or(config_id).or(inner_id).or(outer_id);
    Ok(PushConfig { id, task_id: Some(task_id), ..config })
}

/// Rejects the name of another task; returns the id of the configuration if the fields name one.
fn check_task_and_read_config_id(
    fields: &mut ObjectFields,
    task_id: &str,
) -> Result<Option<String>, Failure> {
    let parent = fields.take_non_empty_text("parent")?;
    let name = fields.take_non_empty_text("name")?;
    let ids =
        name.as_deref().map(|name| resource_name::parse_push_config_ids(name).unwrap_or_default());
    let parent_id =
        parent.as_deref().map(|parent| resource_name::parse_task_id(parent).unwrap_or_default());
    let named_task_id = ids.map(|(task, _)| task);
    if [parent_id, named_task_id].into_iter().flatten().any(|named_id| named_id != task_id) {
        return Err(invalid_params(format!(
            "`{}` must name the task of the path",
            fields.field_path("name")
        )));
    }
    // A client without an id for its configuration sends one of these words as the id.
    let id = ids.and_then(|(_, id)| id).filter(|id| !["None", "undefined", "null"].contains(id));
    Ok(id.map(str::to_owned))
}

/// Reads the query of one push configuration, with `taskId` and `id` from the path.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_query(query: Value) -> Result<PushConfigQuery, Failure> {
    dialect::read_push_query(query)
}

/// Reads the query of a task's push configurations, with `taskId` from the path, and returns the id of the task.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_list_request(query: Value) -> Result<String, Failure> {
    dialect::read_push_list_task_id(query)
}

/// Reads the query that deletes a push configuration, with `taskId` and `id` from the path.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_delete_request(query: Value) -> Result<PushConfigQuery, Failure> {
    dialect::read_push_query(query)
}

/// Reads the answer to a message.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn send_response(answer: Value) -> Result<SendResponse, Failure> {
    DIALECT.read_send_response(answer)
}

/// Reads a task.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn task(answer: Value) -> Result<Task, Failure> {
    DIALECT.read_task(ObjectFields::from_value(answer)?)
}

/// Reads an event of a stream.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn event(data: Value) -> Result<StreamEvent, Failure> {
    DIALECT.read_event(data)
}
