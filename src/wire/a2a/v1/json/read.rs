//! A2A 1.0: parameters on their way in, and, for clients, answers.
//!
//! Over JSON-RPC these read `params`; over HTTP the body or the query, completed with the ids of
//! the path by [`placed`](crate::wire::placed).

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::DIALECT;
use crate::wire::a2a::dialect;
use crate::wire::a2a::v1::{
    ListRequest, PushConfig, PushQuery, Reply, SendRequest, StreamEvent, Task, TaskQuery, Wait,
};
use crate::wire::fields::{Fields, invalid};

/// The parameters of `SendMessage` and `SendStreamingMessage`.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn send(params: Value) -> Result<SendRequest, Failure> {
    let mut fields = Fields::of(params)?;
    let message = fields.inner("message")?;
    let mut configuration = fields.object("configuration")?.unwrap_or_default();
    let push = match configuration.object("taskPushNotificationConfig")? {
        None => configuration.object("pushNotificationConfig")?,
        push => push,
    };
    let at_once = configuration.truth("returnImmediately")?.unwrap_or_default();
    Ok(SendRequest {
        message: DIALECT.message_in(message)?,
        wait: if at_once { Wait::ForAcceptance } else { Wait::ForTheEnd },
        history: dialect::history(&mut configuration)?,
        accepted_output_modes: configuration.words("acceptedOutputModes")?,
        push: push.map(dialect::push).transpose()?,
        metadata: fields.data("metadata")?,
    })
}

/// The agent that the parameters of any method name, where one address serves many.
///
/// # Errors
/// `invalid-params`, when it is not a text.
pub fn tenant(params: &Value) -> Result<Option<&str>, Failure> {
    match params.get("tenant") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(tenant)) => Ok(Some(tenant.as_str()).filter(|name| !name.is_empty())),
        Some(_) => Err(invalid("`tenant` must be a text")),
    }
}

/// The parameters of `GetTask`.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn get(params: Value) -> Result<TaskQuery, Failure> {
    dialect::task_query(params)
}

/// The parameters of `ListTasks`.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn list(params: Value) -> Result<ListRequest, Failure> {
    dialect::list(&DIALECT, params)
}

/// The parameters of `CancelTask`: the task's id.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn cancel(params: Value) -> Result<String, Failure> {
    dialect::task(params)
}

/// The parameters of `SubscribeToTask`: the task's id.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn subscribe(params: Value) -> Result<String, Failure> {
    dialect::task(params)
}

/// The parameters of `CreateTaskPushNotificationConfig`. The task is always known.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_set(params: Value) -> Result<PushConfig, Failure> {
    let config = dialect::push(Fields::of(params)?)?;
    if config.task_id.is_none() {
        return Err(invalid("`taskId` must be there and not empty"));
    }
    Ok(config)
}

/// The parameters of `GetTaskPushNotificationConfig`. The configuration is always named.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_get(params: Value) -> Result<PushQuery, Failure> {
    let query = dialect::push_query(params)?;
    if query.id.is_none() {
        return Err(invalid("`id` must be there and not empty"));
    }
    Ok(query)
}

/// The parameters of `ListTaskPushNotificationConfigs`: the task's id. All fit on one page.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_list(params: Value) -> Result<String, Failure> {
    dialect::push_list(params)
}

/// The parameters of `DeleteTaskPushNotificationConfig`. The configuration is always named.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_delete(params: Value) -> Result<PushQuery, Failure> {
    push_get(params)
}

/// The answer to a message.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn reply(result: Value) -> Result<Reply, Failure> {
    DIALECT.reply_in(result)
}

/// A task.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn task(result: Value) -> Result<Task, Failure> {
    DIALECT.task_in(Fields::of(result)?)
}

/// An event of a stream.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn event(result: Value) -> Result<StreamEvent, Failure> {
    DIALECT.event_in(result)
}
