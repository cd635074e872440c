//! What is asked for, as far as all dialects ask alike.

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::Dialect;
use crate::wire::a2a::v1::{
    History, ListRequest, PushAuthentication, PushConfig, PushQuery, TaskQuery,
};
use crate::wire::fields::{Fields, invalid};

/// The most tasks on a page.
const LARGEST_PAGE: u32 = 100;

/// How much history is wanted: all when not said, none when zero.
pub(in crate::wire::a2a) fn history(fields: &mut Fields) -> Result<History, Failure> {
    Ok(length(fields)?.map_or(History::All, History::Last))
}

fn length(fields: &mut Fields) -> Result<Option<usize>, Failure> {
    let length = fields.count("historyLength")?;
    Ok(length.map(|length| usize::try_from(length).unwrap_or(usize::MAX)))
}

/// Which task is meant, and how much of it is wanted.
pub(in crate::wire::a2a) fn task_query(params: Value) -> Result<TaskQuery, Failure> {
    let mut fields = Fields::of(params)?;
    Ok(TaskQuery { id: fields.needed("id")?, history: history(&mut fields)? })
}

/// Which task is meant.
pub(in crate::wire::a2a) fn task(params: Value) -> Result<String, Failure> {
    Fields::of(params)?.needed("id")
}

/// Which tasks are wanted.
pub(in crate::wire::a2a) fn list(dialect: &Dialect, params: Value) -> Result<ListRequest, Failure> {
    let mut fields = Fields::of(params)?;
    let state = match fields.word("status")? {
        None => None,
        Some(word) if word == "TASK_STATE_UNSPECIFIED" => None,
        Some(word) => Some(dialect.state_of(&word, &fields.place("status"))?),
    };
    let page_size = fields.count("pageSize")?;
    if page_size.is_some_and(|size| size == 0 || size > LARGEST_PAGE) {
        return Err(invalid(format!("`pageSize` must be 1 to {LARGEST_PAGE}")));
    }
    Ok(ListRequest {
        context_id: fields.word("contextId")?,
        state,
        page_size,
        page_token: fields.word("pageToken")?,
        history_length: length(&mut fields)?,
        changed_since: fields.time("statusTimestampAfter")?,
        include_artifacts: fields.truth("includeArtifacts")?.unwrap_or_default(),
    })
}

/// Where to push. The credentials' scheme is one word, or, in 0.3, the first of a list.
pub(in crate::wire::a2a) fn push(mut fields: Fields) -> Result<PushConfig, Failure> {
    let authentication = fields.object("authentication")?;
    Ok(PushConfig {
        id: fields.word("id")?,
        task_id: fields.word("taskId")?,
        url: fields.needed("url")?,
        token: fields.word("token")?,
        authentication: authentication.map(push_authentication).transpose()?.flatten(),
    })
}

fn push_authentication(mut fields: Fields) -> Result<Option<PushAuthentication>, Failure> {
    let credentials = fields.word("credentials")?;
    let listed = fields.words("schemes")?.into_iter().find(|scheme| !scheme.is_empty());
    match (fields.word("scheme")?.or(listed), credentials) {
        (Some(scheme), credentials) => Ok(Some(PushAuthentication { scheme, credentials })),
        (None, None) => Ok(None),
        (None, Some(_)) => {
            Err(invalid(format!("`{}` must be there and not empty", fields.place("scheme"))))
        }
    }
}

/// Which push configuration is meant, in the words of 1.0.
pub(in crate::wire::a2a) fn push_query(params: Value) -> Result<PushQuery, Failure> {
    let mut fields = Fields::of(params)?;
    Ok(PushQuery { task_id: fields.needed("taskId")?, id: fields.word("id")? })
}

/// The task whose push configurations are meant, in the words of 1.0.
pub(in crate::wire::a2a) fn push_list(params: Value) -> Result<String, Failure> {
    Fields::of(params)?.needed("taskId")
}
