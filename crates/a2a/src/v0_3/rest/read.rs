//! Readers of A2A 0.3 over HTTP: bodies, queries and, for clients, answers.
//!
//! A body that is empty or null reads as a body without fields. [`with_path_params`](crate::with_path_params) adds the
//! ids of the path beforehand: `id` for a task, `taskId` and `id` for a push configuration.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::{DIALECT, resource_name};
use crate::dialect;
use crate::json_object::{ObjectFields, invalid};
use crate::v1::{
    HistoryLength, ListRequest, PushConfig, PushQuery, SendMode, SendRequest, SendResponse,
    StreamEvent, Task, TaskQuery,
};

/// Parses a body as JSON; an empty body is null.
///
/// # Errors
/// `malformed-json`.
pub fn body(bytes: &[u8]) -> Result<Value, Failure> {
    if bytes.trim_ascii().is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(bytes)
        .map_err(|_syntax| Failure::new(Code::MalformedJson, "the body is not one JSON document"))
}

/// Reads the body of `message:send` and `message:stream`.
///
/// Without a configuration, the answer waits for the end of the task. With a configuration, the answer waits only if
/// `blocking` is true, because clients omit `blocking` when it is false. For the same reason a history length of
/// zero means the whole history.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn send(body: Value) -> Result<SendRequest, Failure> {
    let mut fields = ObjectFields::of(body)?;
    // The `.proto` file of 0.3 names the message `request`, the text of the specification `message`.
    let message = match fields.object("request")? {
        None => fields.required_object("message")?,
        Some(message) => message,
    };
    if message.has("parts") && !message.has("content") {
        let text = "a message of 0.3 has `content`; for 1.0 send the header `A2A-Version: 1.0`";
        return Err(invalid(text));
    }
    let configuration = fields.object("configuration")?;
    let is_configured = configuration.is_some();
    let mut configuration = configuration.unwrap_or_default();
    // The `.proto` file and the specification name this field differently too.
    let push = match configuration.object("pushNotification")? {
        None => configuration.object("pushNotificationConfig")?,
        push => push,
    };
    let waits = configuration.boolean("blocking")?.unwrap_or(!is_configured);
    let history = match dialect::history(&mut configuration)? {
        HistoryLength::Last(0) => HistoryLength::All,
        history @ (HistoryLength::All | HistoryLength::Last(_)) => history,
    };
    Ok(SendRequest {
        message: DIALECT.message_in(message)?,
        wait: if waits { SendMode::Blocking } else { SendMode::NonBlocking },
        history,
        accepted_output_modes: configuration.strings("acceptedOutputModes")?,
        push: push.map(dialect::push).transpose()?,
        metadata: fields.data("metadata")?,
    })
}

/// Reads the query of a task, with `id` from the path.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn get(query: Value) -> Result<TaskQuery, Failure> {
    dialect::task_query(query)
}

/// Reads the query of a list of tasks; 0.3 does not define its fields, so they are those of 1.0.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn list(query: Value) -> Result<ListRequest, Failure> {
    dialect::list(&DIALECT, query)
}

/// Reads the body of `:cancel`, with `id` from the path, and returns the id of the task.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn cancel(body: Value) -> Result<String, Failure> {
    dialect::task(body)
}

/// Reads the body of `:subscribe`, with `id` from the path, and returns the id of the task.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn subscribe(body: Value) -> Result<String, Failure> {
    dialect::task(body)
}

/// Reads the body that registers a push configuration, with `taskId` from the path: the configuration itself, or a
/// configuration wrapped with the name of its parent.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_set(body: Value) -> Result<PushConfig, Failure> {
    let mut fields = ObjectFields::of(body)?;
    let task_id = fields.required("taskId")?;
    let outer = check_names(&mut fields, &task_id)?;
    let config_id = fields.string("configId")?;
    let mut fields = match fields.object("config")? {
        Some(config) => config,
        None => fields,
    };
    let inner = check_names(&mut fields, &task_id)?;
    let config = dialect::push(fields.required_object("pushNotificationConfig")?)?;
    // Clients put the id in any of these places; the innermost one is the most specific.
    let id = config.id.or(config_id).or(inner).or(outer);
    Ok(PushConfig { id, task_id: Some(task_id), ..config })
}

/// Rejects the name of another task; returns the id of the configuration if the fields name one.
fn check_names(fields: &mut ObjectFields, task: &str) -> Result<Option<String>, Failure> {
    let parent = fields.string("parent")?;
    let name = fields.string("name")?;
    let ids = name.as_deref().map(|name| resource_name::push_ids(name).unwrap_or_default());
    let parent = parent.as_deref().map(|parent| resource_name::task_id(parent).unwrap_or_default());
    let named = ids.map(|(task, _)| task);
    if [parent, named].into_iter().flatten().any(|named| named != task) {
        return Err(invalid(format!(
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
pub fn push_get(query: Value) -> Result<PushQuery, Failure> {
    dialect::push_query(query)
}

/// Reads the query of a task's push configurations, with `taskId` from the path, and returns the id of the task.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_list(query: Value) -> Result<String, Failure> {
    dialect::push_list(query)
}

/// Reads the query that deletes a push configuration, with `taskId` and `id` from the path.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_delete(query: Value) -> Result<PushQuery, Failure> {
    dialect::push_query(query)
}

/// Reads the answer to a message.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn reply(answer: Value) -> Result<SendResponse, Failure> {
    DIALECT.reply_in(answer)
}

/// Reads a task.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn task(answer: Value) -> Result<Task, Failure> {
    DIALECT.task_in(ObjectFields::of(answer)?)
}

/// Reads an event of a stream.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn event(data: Value) -> Result<StreamEvent, Failure> {
    DIALECT.event_in(data)
}
