//! A2A 0.3 over HTTP: bodies and queries on their way in, and, for clients, answers.
//!
//! A body that is empty or null reads as one without fields. What the path says is put in by
//! [`placed`](crate::wire::placed) before: `id` for a task, `taskId` and `id` for a push
//! configuration.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::{DIALECT, name};
use crate::wire::a2a::dialect;
use crate::wire::a2a::v1::{
    History, ListRequest, PushConfig, PushQuery, Reply, SendRequest, StreamEvent, Task, TaskQuery,
    Wait,
};
use crate::wire::fields::{Fields, invalid};

/// A body as JSON; none is null.
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

/// The body of `message:send` and `message:stream`.
///
/// Without a configuration the answer waits for the end; with one it does so only when told, since
/// clients leave `blocking` out when it is false. A history of zero messages is one without bounds,
/// for the same reason.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn send(body: Value) -> Result<SendRequest, Failure> {
    let mut fields = Fields::of(body)?;
    let message = match fields.object("request")? {
        None => fields.inner("message")?,
        Some(message) => message,
    };
    if message.has("parts") && !message.has("content") {
        let text = "a message of 0.3 has `content`; for 1.0 send the header `A2A-Version: 1.0`";
        return Err(invalid(text));
    }
    let configuration = fields.object("configuration")?;
    let is_configured = configuration.is_some();
    let mut configuration = configuration.unwrap_or_default();
    let push = match configuration.object("pushNotification")? {
        None => configuration.object("pushNotificationConfig")?,
        push => push,
    };
    let waits = configuration.truth("blocking")?.unwrap_or(!is_configured);
    let history = match dialect::history(&mut configuration)? {
        History::Last(0) => History::All,
        history @ (History::All | History::Last(_)) => history,
    };
    Ok(SendRequest {
        message: DIALECT.message_in(message)?,
        wait: if waits { Wait::ForTheEnd } else { Wait::ForAcceptance },
        history,
        accepted_output_modes: configuration.words("acceptedOutputModes")?,
        push: push.map(dialect::push).transpose()?,
        metadata: fields.data("metadata")?,
    })
}

/// The query of a task, with `id` from the path.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn get(query: Value) -> Result<TaskQuery, Failure> {
    dialect::task_query(query)
}

/// The query of a list of tasks; 0.3 does not say what is in it, so it is as in 1.0.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn list(query: Value) -> Result<ListRequest, Failure> {
    dialect::list(&DIALECT, query)
}

/// The body of `:cancel`, with `id` from the path: the task's id.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn cancel(body: Value) -> Result<String, Failure> {
    dialect::task(body)
}

/// The body of `:subscribe`, with `id` from the path: the task's id.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn subscribe(body: Value) -> Result<String, Failure> {
    dialect::task(body)
}

/// The body that registers a push configuration, with `taskId` from the path: the configuration
/// itself, or one wrapped with the name of its parent.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_set(body: Value) -> Result<PushConfig, Failure> {
    let mut fields = Fields::of(body)?;
    let task_id = fields.needed("taskId")?;
    let outer = check_names(&mut fields, &task_id)?;
    let told = fields.word("configId")?;
    let mut fields = match fields.object("config")? {
        Some(config) => config,
        None => fields,
    };
    let inner = check_names(&mut fields, &task_id)?;
    let config = dialect::push(fields.inner("pushNotificationConfig")?)?;
    let id = config.id.or(told).or(inner).or(outer);
    Ok(PushConfig { id, task_id: Some(task_id), ..config })
}

/// Refuses the name of another task; returns the id of the configuration when one is named.
fn check_names(fields: &mut Fields, task: &str) -> Result<Option<String>, Failure> {
    let parent = fields.word("parent")?;
    let name = fields.word("name")?;
    let ids = name.as_deref().map(|name| name::push_ids(name).unwrap_or_default());
    let parent = parent.as_deref().map(|parent| name::task_id(parent).unwrap_or_default());
    let named = ids.map(|(task, _)| task);
    if [parent, named].into_iter().flatten().any(|named| named != task) {
        return Err(invalid(format!("`{}` is not of the path's task", fields.place("name"))));
    }
    // A client that has no id for its configuration writes one of these for it.
    let id = ids.and_then(|(_, id)| id).filter(|id| !["None", "undefined", "null"].contains(id));
    Ok(id.map(str::to_owned))
}

/// The query of one push configuration, with `taskId` and `id` from the path.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_get(query: Value) -> Result<PushQuery, Failure> {
    dialect::push_query(query)
}

/// The query of a task's push configurations, with `taskId` from the path: the task's id.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_list(query: Value) -> Result<String, Failure> {
    dialect::push_list(query)
}

/// The query of a push configuration's removal, with `taskId` and `id` from the path.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_delete(query: Value) -> Result<PushQuery, Failure> {
    dialect::push_query(query)
}

/// The answer to a message.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn reply(answer: Value) -> Result<Reply, Failure> {
    DIALECT.reply_in(answer)
}

/// A task.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn task(answer: Value) -> Result<Task, Failure> {
    DIALECT.task_in(Fields::of(answer)?)
}

/// An event of a stream.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn event(data: Value) -> Result<StreamEvent, Failure> {
    DIALECT.event_in(data)
}
