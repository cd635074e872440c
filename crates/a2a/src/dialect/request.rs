//! Readers of request parameters that all dialects share.

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::JsonDialect;
use crate::json_object::{ObjectFields, invalid};
use crate::v1::{HistoryLength, ListRequest, PushAuthentication, PushConfig, PushQuery, TaskQuery};

/// Maximum number of tasks on a page.
const MAX_PAGE_SIZE: u32 = 100;

/// Reads the requested length of the history: an absent length means the whole history, zero means none.
pub(crate) fn history(fields: &mut ObjectFields) -> Result<HistoryLength, Failure> {
    Ok(length(fields)?.map_or(HistoryLength::All, HistoryLength::Last))
}

fn length(fields: &mut ObjectFields) -> Result<Option<usize>, Failure> {
    let length = fields.count("historyLength")?;
    Ok(length.map(|length| usize::try_from(length).unwrap_or(usize::MAX)))
}

/// Reads the id of a task and the requested length of its history.
pub(crate) fn task_query(params: Value) -> Result<TaskQuery, Failure> {
    let mut fields = ObjectFields::of(params)?;
    Ok(TaskQuery { id: fields.id("id")?, history: history(&mut fields)? })
}

/// Reads the id of a task.
pub(crate) fn task(params: Value) -> Result<String, Failure> {
    ObjectFields::of(params)?.id("id")
}

/// Reads the filter and the page of a request for a list of tasks.
pub(crate) fn list(dialect: &JsonDialect, params: Value) -> Result<ListRequest, Failure> {
    let mut fields = ObjectFields::of(params)?;
    let state = match fields.string("status")? {
        None => None,
        // The zero value of protobuf, which its writers may send for an absent field.
        Some(word) if word == "TASK_STATE_UNSPECIFIED" => None,
        Some(word) => Some(dialect.state_of(&word, &fields.field_path("status"))?),
    };
    let page_size = fields.count("pageSize")?;
    // Checked here and not by each transport, so that the message names the field of JSON.
    if page_size.is_some_and(|size| size == 0 || size > MAX_PAGE_SIZE) {
        return Err(invalid(format!("`pageSize` must be 1 to {MAX_PAGE_SIZE}")));
    }
    Ok(ListRequest {
        context_id: fields.string("contextId")?,
        state,
        page_size,
        page_token: fields.string("pageToken")?,
        history_length: length(&mut fields)?,
        changed_since: fields.time("statusTimestampAfter")?,
        include_artifacts: fields.boolean("includeArtifacts")?.unwrap_or_default(),
    })
}

/// Reads a push configuration. The scheme of the credentials is one word or, in 0.3, the first entry of a list.
pub(crate) fn push(mut fields: ObjectFields) -> Result<PushConfig, Failure> {
    let authentication = fields.object("authentication")?;
    Ok(PushConfig {
        id: fields.string("id")?,
        task_id: fields.string("taskId")?,
        url: fields.required("url")?,
        token: fields.string("token")?,
        authentication: authentication.map(push_authentication).transpose()?.flatten(),
    })
}

fn push_authentication(mut fields: ObjectFields) -> Result<Option<PushAuthentication>, Failure> {
    let credentials = fields.string("credentials")?;
    // 0.3 has a list, 1.0 one word; both are read in either version.
    let listed = fields.strings("schemes")?.into_iter().find(|scheme| !scheme.is_empty());
    match (fields.string("scheme")?.or(listed), credentials) {
        (Some(scheme), credentials) => Ok(Some(PushAuthentication { scheme, credentials })),
        (None, None) => Ok(None),
        (None, Some(_)) => {
            Err(invalid(format!("`{}` must be present and not empty", fields.field_path("scheme"))))
        }
    }
}

/// Reads the ids of a push configuration and of its task, under the names of 1.0.
pub(crate) fn push_query(params: Value) -> Result<PushQuery, Failure> {
    let mut fields = ObjectFields::of(params)?;
    Ok(PushQuery { task_id: fields.id("taskId")?, id: fields.string("id")? })
}

/// Reads the id of the task of a request for its push configurations, under the name of 1.0.
pub(crate) fn push_list(params: Value) -> Result<String, Failure> {
    ObjectFields::of(params)?.id("taskId")
}
