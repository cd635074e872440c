//! Readers of A2A 0.3 over JSON-RPC: parameters and, for clients, answers.

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::DIALECT;
use crate::dialect;
use crate::json_object::{ObjectFields, invalid_params};
use crate::v1::{
    PushConfig, PushConfigQuery, SendMode, SendRequest, SendResponse, StreamEvent, Task, TaskQuery,
};

/// Reads the parameters of `message/send` and `message/stream`. Without `blocking`, the answer waits for the end of
/// the task.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn send_request(params: Value) -> Result<SendRequest, Failure> {
    let mut fields = ObjectFields::from_value(params)?;
    let message = fields.take_required_object("message")?;
    let mut configuration = fields.take_object("configuration")?.unwrap_or_default();
    let push_fields = configuration.take_object("pushNotificationConfig")?;
    let is_blocking = dialect::read_blocking(&mut configuration)?.unwrap_or(true);
    Ok(SendRequest {
        message: DIALECT.read_message(message)?,
        send_mode: if is_blocking { SendMode::Blocking } else { SendMode::NonBlocking },
        history_length: dialect::read_history_length(&mut configuration)?,
        accepted_output_modes: configuration.take_text_list("acceptedOutputModes")?,
        push_config: push_fields.map(dialect::read_push_config).transpose()?,
        metadata: fields.take_json_map("metadata")?,
    })
}

/// Reads the parameters of `tasks/get`.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn task_query(params: Value) -> Result<TaskQuery, Failure> {
    dialect::read_task_query(params)
}

/// Reads the parameters of `tasks/cancel` and returns the id of the task.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn cancel_request(params: Value) -> Result<String, Failure> {
    dialect::read_task_id(params)
}

/// Reads the parameters of `tasks/resubscribe` and returns the id of the task.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn subscribe_request(params: Value) -> Result<String, Failure> {
    dialect::read_task_id(params)
}

/// Reads the parameters of `tasks/pushNotificationConfig/set`. The result always names the task.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_set_request(params: Value) -> Result<PushConfig, Failure> {
    let mut fields = ObjectFields::from_value(params)?;
    let task_id = fields.take_required_id("taskId")?;
    let config = dialect::read_push_config(fields.take_required_object("pushNotificationConfig")?)?;
    Ok(PushConfig { task_id: Some(task_id), ..config })
}

/// Reads the parameters of `tasks/pushNotificationConfig/get`, which need not name a configuration.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_query(params: Value) -> Result<PushConfigQuery, Failure> {
    let mut fields = ObjectFields::from_value(params)?;
    Ok(PushConfigQuery {
        task_id: fields.take_required_id("id")?,
        id: fields.take_non_empty_text("pushNotificationConfigId")?,
    })
}

/// Reads the parameters of `tasks/pushNotificationConfig/list` and returns the id of the task.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_list_request(params: Value) -> Result<String, Failure> {
    dialect::read_task_id(params)
}

/// Reads the parameters of `tasks/pushNotificationConfig/delete`. The result always names the configuration.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_delete_request(params: Value) -> Result<PushConfigQuery, Failure> {
    let query = push_query(params)?;
    if query.id.is_none() {
        return Err(invalid_params("`pushNotificationConfigId` must be present and not empty"));
    }
    Ok(query)
}

/// Reads the answer to a message.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn send_response(result: Value) -> Result<SendResponse, Failure> {
    DIALECT.read_send_response(result)
}

/// Reads a task.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn task(result: Value) -> Result<Task, Failure> {
    DIALECT.read_task(ObjectFields::from_value(result)?)
}

/// Reads an event of a stream.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn event(result: Value) -> Result<StreamEvent, Failure> {
    DIALECT.read_event(result)
}
