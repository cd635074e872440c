//! Readers of A2A 1.0: parameters and, for clients, answers.
//!
//! Over JSON-RPC these functions read `params`; over HTTP they read the body or the query, to which
//! [`crate::add_path_params`] adds the ids of the path.

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::DIALECT;
use crate::dialect;
use crate::json_object::{ObjectFields, invalid_params};
use crate::v1::{
    ListRequest, PushConfig, PushConfigQuery, SendMode, SendRequest, SendResponse, StreamEvent,
    Task, TaskQuery,
};

/// Reads the parameters of `SendMessage` and `SendStreamingMessage`.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn send_request(params: Value) -> Result<SendRequest, Failure> {
    let mut fields = ObjectFields::from_value(params)?;
    let message = fields.take_required_object("message")?;
    let mut configuration = fields.take_object("configuration")?.unwrap_or_default();
    let push_fields = match configuration.take_object("taskPushNotificationConfig")? {
        None => configuration.take_object("pushNotificationConfig")?,
        push => push,
    };
    let returns_immediately = match configuration.take_boolean("returnImmediately")? {
        Some(returns_immediately) => returns_immediately,
        // The name of 0.3, with the opposite meaning: a caller of both versions would otherwise wait without a cause.
        None => configuration.take_boolean("blocking")?.is_some_and(|is_blocking| !is_blocking),
    };
    Ok(SendRequest {
        message: DIALECT.read_message(message)?,
        send_mode: if returns_immediately { SendMode::NonBlocking } else { SendMode::Blocking },
        history_length: dialect::read_history_length(&mut configuration)?,
        accepted_output_modes: configuration.take_text_list("acceptedOutputModes")?,
        push_config: push_fields.map(dialect::read_push_config).transpose()?,
        metadata: fields.take_json_map("metadata")?,
    })
}

/// Returns the agent that the parameters of any method name, for an address that serves many agents.
///
/// # Errors
/// `invalid-params`, when it is not a text.
pub fn tenant(params: &Value) -> Result<Option<&str>, Failure> {
    match params.get("tenant") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(tenant)) => Ok(Some(tenant.as_str()).filter(|name| !name.is_empty())),
        Some(_) => Err(invalid_params("`tenant` must be a text")),
    }
}

/// Reads the parameters of `GetTask`.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn task_query(params: Value) -> Result<TaskQuery, Failure> {
    dialect::read_task_query(params)
}

/// Reads the parameters of `ListTasks`.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn list_request(params: Value) -> Result<ListRequest, Failure> {
    dialect::read_list_request(&DIALECT, params)
}

/// Reads the parameters of `CancelTask` and returns the id of the task.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn cancel_request(params: Value) -> Result<String, Failure> {
    dialect::read_task_id(params)
}

/// Reads the parameters of `SubscribeToTask` and returns the id of the task.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn subscribe_request(params: Value) -> Result<String, Failure> {
    dialect::read_task_id(params)
}

/// Reads the parameters of `CreateTaskPushNotificationConfig`. The result always names the task.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_set_request(params: Value) -> Result<PushConfig, Failure> {
    let config = dialect::read_push_config(ObjectFields::from_value(params)?)?;
    if config.task_id.is_none() {
        return Err(invalid_params("`taskId` must be present and not empty"));
    }
    Ok(config)
}

/// Reads the parameters of `GetTaskPushNotificationConfig`. The result always names the configuration.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_query(params: Value) -> Result<PushConfigQuery, Failure> {
    let query = dialect::read_push_query(params)?;
    if query.id.is_none() {
        return Err(invalid_params("`id` must be present and not empty"));
    }
    Ok(query)
}

/// Reads the parameters of `ListTaskPushNotificationConfigs` and returns the id of the task. All configurations fit
/// on one page, so the page fields are ignored.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_list_request(params: Value) -> Result<String, Failure> {
    dialect::read_push_list_task_id(params)
}

/// Reads the parameters of `DeleteTaskPushNotificationConfig`. The result always names the configuration.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn push_delete_request(params: Value) -> Result<PushConfigQuery, Failure> {
    push_query(params)
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
