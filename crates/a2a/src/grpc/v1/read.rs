//! Conversion of messages of 1.0 into core shapes.

use algonius_actors::model::failure::Failure;

use crate::base64;
use crate::grpc::proto::lf_a2a_v1 as pb;
use crate::grpc::value::{
    count, invalid, json, metadata, optional_text, required, required_text, time,
};
use crate::v1::{
    A2aPart, HistoryLength, ListRequest, Message, PartContent, PushAuthentication, PushConfig,
    Role, SendMode, SendRequest, TaskState,
};

/// Reads a request to send a message.
///
/// # Errors
/// Fails with `invalid-params` if a field is missing or invalid.
pub fn send_request(read: pb::SendMessageRequest) -> Result<SendRequest, Failure> {
    let pb::SendMessageRequest { tenant: _, message: proto_message, configuration, metadata: data } =
        read;
    let pb::SendMessageConfiguration {
        accepted_output_modes,
        task_push_notification_config,
        history_length,
        return_immediately,
        // All defaults of 1.0 are the zero values of protobuf, so an absent configuration needs no case of its own.
    } = configuration.unwrap_or_default();
    Ok(SendRequest {
        message: message(required(proto_message, "message")?)?,
        wait: if return_immediately { SendMode::NonBlocking } else { SendMode::Blocking },
        history: history(history_length)?,
        accepted_output_modes,
        push: task_push_notification_config.map(push).transpose()?,
        metadata: metadata(data)?,
    })
}

/// Reads the requested length of the history.
///
/// # Errors
/// Fails with `invalid-params` if a field is missing or invalid.
pub fn history(length: Option<i32>) -> Result<HistoryLength, Failure> {
    length.map_or(Ok(HistoryLength::All), |length| {
        count(length, "history_length").map(HistoryLength::Last)
    })
}

/// Reads a request to list tasks.
///
/// # Errors
/// Fails with `invalid-params` if a field is missing or invalid.
pub fn list_request(read: pb::ListTasksRequest) -> Result<ListRequest, Failure> {
    let pb::ListTasksRequest {
        tenant: _,
        context_id,
        status,
        page_size,
        page_token,
        history_length,
        status_timestamp_after,
        include_artifacts,
    } = read;
    let history = history_length.map(|length| count(length, "history_length"));
    let since = status_timestamp_after.map(|read| time(read, "status_timestamp_after"));
    Ok(ListRequest {
        context_id: optional_text(context_id),
        state: state(status)?,
        page_size: page_size.map(|size| count(size, "page_size")).transpose()?,
        page_token: optional_text(page_token),
        history_length: history.transpose()?,
        changed_since: since.transpose()?,
        include_artifacts: include_artifacts.unwrap_or(false),
    })
}

fn state(read: i32) -> Result<Option<TaskState>, Failure> {
    let state = pb::TaskState::try_from(read);
    Ok(Some(match state.map_err(|_unknown| invalid("`status` must be a state of tasks"))? {
        // The zero value of an enumeration means that the field is absent.
        pb::TaskState::Unspecified => return Ok(None),
        pb::TaskState::Submitted => TaskState::Submitted,
        pb::TaskState::Working => TaskState::Working,
        pb::TaskState::Completed => TaskState::Completed,
        pb::TaskState::Failed => TaskState::Failed,
        pb::TaskState::Canceled => TaskState::Canceled,
        pb::TaskState::InputRequired => TaskState::InputRequired,
        pb::TaskState::Rejected => TaskState::Rejected,
        pb::TaskState::AuthRequired => TaskState::AuthRequired,
    }))
}

/// Reads a message.
///
/// # Errors
/// Fails with `invalid-params` if a field is missing or invalid.
pub fn message(read: pb::Message) -> Result<Message, Failure> {
    let pb::Message {
        message_id,
        context_id,
        task_id,
        role,
        parts,
        metadata: data,
        extensions,
        reference_task_ids,
    } = read;
    if parts.is_empty() {
        return Err(invalid("`message.parts` must not be empty"));
    }
    Ok(Message {
        message_id: required_text(message_id, "message.message_id")?,
        context_id: optional_text(context_id),
        task_id: optional_text(task_id),
        role: match pb::Role::try_from(role) {
            Ok(pb::Role::User) => Role::User,
            Ok(pb::Role::Agent) => Role::Agent,
            Ok(pb::Role::Unspecified) | Err(_) => {
                return Err(invalid("`message.role` must be ROLE_USER or ROLE_AGENT"));
            }
        },
        parts: parts.into_iter().map(part).collect::<Result<_, _>>()?,
        metadata: metadata(data)?,
        extensions,
        reference_task_ids,
    })
}

/// Reads a part.
///
/// # Errors
/// Fails with `invalid-params` if a field is missing or invalid.
pub fn part(read: pb::Part) -> Result<A2aPart, Failure> {
    let pb::Part { content, metadata: data, filename, media_type } = read;
    let content = match content {
        Some(pb::part::Content::Text(text)) => PartContent::Text(text),
        Some(pb::part::Content::Raw(bytes)) => PartContent::Raw(base64::encode(&bytes)),
        Some(pb::part::Content::Url(url)) => PartContent::Url(url),
        Some(pb::part::Content::Data(data)) => PartContent::Data(json(data)?),
        None => return Err(invalid("a part must have `text`, `raw`, `url` or `data`")),
    };
    let (filename, media_type) = (optional_text(filename), optional_text(media_type));
    Ok(A2aPart { content, filename, media_type, metadata: metadata(data)? })
}

/// Reads a push configuration.
///
/// # Errors
/// Fails with `invalid-params` if a field is missing or invalid.
pub fn push(read: pb::TaskPushNotificationConfig) -> Result<PushConfig, Failure> {
    let pb::TaskPushNotificationConfig { tenant: _, id, task_id, url, token, authentication } =
        read;
    let authentication = authentication.map(|auth| {
        // A message of protobuf is present even if all its fields are empty.
        let scheme = required_text(auth.scheme, "authentication.scheme")?;
        Ok::<_, Failure>(PushAuthentication {
            scheme,
            credentials: optional_text(auth.credentials),
        })
    });
    Ok(PushConfig {
        id: optional_text(id),
        task_id: optional_text(task_id),
        url: required_text(url, "url")?,
        token: optional_text(token),
        authentication: authentication.transpose()?,
    })
}
