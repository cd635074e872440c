//! Readers of request parameters that all dialects share.

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::JsonDialect;
use crate::json_object::{ObjectFields, invalid_params};
use crate::v1::{
    HistoryLength, ListRequest, PushAuthentication, PushConfig, PushConfigQuery, TaskQuery,
};

/// Maximum number of tasks on a page.
const MAX_PAGE_SIZE: u32 = 100;

/// Reads whether an answer waits for the task, by the name of 0.3 or else by that of 1.0 with the opposite meaning: a
/// caller of both versions would otherwise wait without a cause, or not at all.
///
/// # Errors
/// `invalid-params`, naming the field.
pub(crate) fn read_blocking(configuration: &mut ObjectFields) -> Result<Option<bool>, Failure> {
    Ok(match configuration.take_boolean("blocking")? {
        Some(is_blocking) => Some(is_blocking),
        None => configuration.take_boolean("returnImmediately")?.map(|is_immediate| !is_immediate),
    })
}

/// Reads the requested length of the history: an absent length means the whole history, zero means none.
pub(crate) fn read_history_length(fields: &mut ObjectFields) -> Result<HistoryLength, Failure> {
    Ok(read_history_count(fields)?.map_or(HistoryLength::All, HistoryLength::Last))
}

fn read_history_count(fields: &mut ObjectFields) -> Result<Option<usize>, Failure> {
    let length = fields.take_non_negative_integer("historyLength")?;
    Ok(length.map(|length| usize::try_from(length).unwrap_or(usize::MAX)))
}

/// Reads the id of a task and the requested length of its history.
pub(crate) fn read_task_query(params: Value) -> Result<TaskQuery, Failure> {
    let mut fields = ObjectFields::from_value(params)?;
    Ok(TaskQuery {
        id: fields.take_required_id("id")?,
        history_length: read_history_length(&mut fields)?,
    })
}

/// Reads the id of a task.
pub(crate) fn read_task_id(params: Value) -> Result<String, Failure> {
    ObjectFields::from_value(params)?.take_required_id("id")
}

/// Reads the filter and the page of a request for a list of tasks.
pub(crate) fn read_list_request(
    dialect: &JsonDialect,
    params: Value,
) -> Result<ListRequest, Failure> {
    let mut fields = ObjectFields::from_value(params)?;
    let state = match fields.take_non_empty_text("status")? {
        None => None,
        // The zero value of protobuf, which its writers may send for an absent field.
        Some(name) if name == "TASK_STATE_UNSPECIFIED" => None,
        Some(name) => Some(dialect.parse_state(&name, &fields.field_path("status"))?),
    };
    let page_size = fields.take_non_negative_integer("pageSize")?;
    // Checked here and not by each transport, so that the message names the field of JSON.
    if page_size.is_some_and(|size| size == 0 || size > MAX_PAGE_SIZE) {
        return Err(invalid_params(format!("`pageSize` must be 1 to {MAX_PAGE_SIZE}")));
    }
    Ok(ListRequest {
        context_id: fields.take_non_empty_text("contextId")?,
        state,
        page_size,
        page_token: fields.take_non_empty_text("pageToken")?,
        history_length: read_history_count(&mut fields)?,
        changed_since: fields.take_time("statusTimestampAfter")?,
        include_artifacts: fields.take_boolean("includeArtifacts")?.unwrap_or_default(),
    })
}

/// Reads a push configuration. The scheme of the credentials is one word or, in 0.3, the first entry of a list.
pub(crate) fn read_push_config(mut fields: ObjectFields) -> Result<PushConfig, Failure> {
    let authentication = fields.take_object("authentication")?;
    Ok(PushConfig {
        id: fields.take_non_empty_text("id")?,
        task_id: fields.take_non_empty_text("taskId")?,
        url: fields.take_required_text("url")?,
        token: fields.take_non_empty_text("token")?,
        authentication: authentication.map(read_push_authentication).transpose()?.flatten(),
    })
}

fn read_push_authentication(
    mut fields: ObjectFields,
) -> Result<Option<PushAuthentication>, Failure> {
    let credentials = fields.take_non_empty_text("credentials")?;
    // 0.3 has a list, 1.0 one word; both are read in either version.
    let listed_scheme =
        fields.take_text_list("schemes")?.into_iter().find(|scheme| !scheme.is_empty());
    match (fields.take_non_empty_text("scheme")?.or(listed_scheme), credentials) {
        (Some(scheme), credentials) => Ok(Some(PushAuthentication { scheme, credentials })),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(invalid_params(format!(
            "`{}` must be present and not empty",
            fields.field_path("scheme")
        ))),
    }
}

/// Reads the ids of a push configuration and of its task, under the names of 1.0.
pub(crate) fn read_push_query(params: Value) -> Result<PushConfigQuery, Failure> {
    let mut fields = ObjectFields::from_value(params)?;
    Ok(PushConfigQuery {
        task_id: fields.take_required_id("taskId")?,
        id: fields.take_non_empty_text("id")?,
    })
}

/// Reads the id of the task of a request for its push configurations, under the name of 1.0.
pub(crate) fn read_push_list_task_id(params: Value) -> Result<String, Failure> {
    ObjectFields::from_value(params)?.take_required_id("taskId")
}
