//! A2A 0.3 on JSON-RPC: parameters on their way in, and, for clients, answers.

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::DIALECT;
use crate::wire::a2a::dialect;
use crate::wire::a2a::v1::{
    PushConfig, PushQuery, Reply, SendRequest, StreamEvent, Task, TaskQuery, Wait,
};
use crate::wire::fields::{Fields, invalid};

/// The parameters of `message/send` and `message/stream`. Unless told otherwise, the answer waits
/// for the end.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn send(params: Value) -> Result<SendRequest, Failure> {
    let mut fields = Fields::of(params)?;
    let message = fields.inner("message")?;
    let mut configuration = fields.object("configuration")?.unwrap_or_default();
    let push = configuration.object("pushNotificationConfig")?;
    let waits = configuration.truth("blocking")?.unwrap_or(true);
    Ok(SendRequest {
        message: DIALECT.message_in(message)?,
        wait: if waits { Wait::ForTheEnd } else { Wait::ForAcceptance },
        history: dialect::history(&mut configuration)?,
        accepted_output_modes: configuration.words("acceptedOutputModes")?,
        push: push.map(dialect::push).transpose()?,
        metadata: fields.data("metadata")?,
    })
}

/// The parameters of `tasks/get`.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn get(params: Value) -> Result<TaskQuery, Failure> {
    dialect::task_query(params)
}

/// The parameters of `tasks/cancel`: the task's id.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn cancel(params: Value) -> Result<String, Failure> {
    dialect::task(params)
}

/// The parameters of `tasks/resubscribe`: the task's id.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn subscribe(params: Value) -> Result<String, Failure> {
    dialect::task(params)
}

/// The parameters of `tasks/pushNotificationConfig/set`. The task is always known.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_set(params: Value) -> Result<PushConfig, Failure> {
    let mut fields = Fields::of(params)?;
    let task_id = fields.needed("taskId")?;
    let config = dialect::push(fields.inner("pushNotificationConfig")?)?;
    Ok(PushConfig { task_id: Some(task_id), ..config })
}

/// The parameters of `tasks/pushNotificationConfig/get`, which need not name a configuration.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_get(params: Value) -> Result<PushQuery, Failure> {
    let mut fields = Fields::of(params)?;
    Ok(PushQuery { task_id: fields.needed("id")?, id: fields.word("pushNotificationConfigId")? })
}

/// The parameters of `tasks/pushNotificationConfig/list`: the task's id.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_list(params: Value) -> Result<String, Failure> {
    dialect::task(params)
}

/// The parameters of `tasks/pushNotificationConfig/delete`. The configuration is always named.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_delete(params: Value) -> Result<PushQuery, Failure> {
    let query = push_get(params)?;
    if query.id.is_none() {
        return Err(invalid("`pushNotificationConfigId` must be there and not empty"));
    }
    Ok(query)
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
