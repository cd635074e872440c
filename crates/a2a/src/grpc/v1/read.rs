//! Conversion of messages of 1.0 into core shapes.

use algonius_actors::model::failure::Failure;

use crate::base64;
use crate::grpc::conversions::{
    invalid_params, optional_text, read_count, read_json, read_metadata, read_time, required_field,
    required_text,
};
use crate::grpc::proto::lf_a2a_v1 as pb;
use crate::v1::{
    A2aPart, HistoryLength, ListRequest, Message, PartContent, PushAuthentication, PushConfig,
    Role, SendMode, SendRequest, TaskState,
};

/// Reads a request to send a message.
///
/// # Errors
/// Fails with `invalid-params` if a field is missing or invalid.
pub fn send_request(proto: pb::SendMessageRequest) -> Result<SendRequest, Failure> {
    let pb::SendMessageRequest {
        tenant: _,
        message: proto_message,
        configuration,
        metadata: proto_metadata,
    } = proto;
    let pb::SendMessageConfiguration {
        accepted_output_modes,
        task_push_notification_config,
        history_length,
        return_immediately,
        // All defaults of 1.0 are the zero values of protobuf, so an absent configuration needs no case of its own.
    } = configuration.unwrap_or_default();
    Ok(SendRequest {
        message: message(required_field(proto_message, "message")?)?,
        send_mode: if return_immediately { SendMode::NonBlocking } else { SendMode::Blocking },
        history_length: read_history_length(history_length)?,
        accepted_output_modes,
        push_config: task_push_notification_config.map(push_config).transpose()?,
        metadata: read_metadata(proto_metadata)?,
    })
}

/// Reads the requested length of the history.
///
/// # Errors
/// Fails with `invalid-params` if a field is missing or invalid.
pub fn read_history_length(length: Option<i32>) -> Result<HistoryLength, Failure> {
    length.map_or(Ok(HistoryLength::All), |length| {
        read_count(length, "history_length").map(HistoryLength::Last)
    })
}

/// Reads a request to list tasks.
///
/// # Errors
/// Fails with `invalid-params` if a field is missing or invalid.
pub fn list_request(proto: pb::ListTasksRequest) -> Result<ListRequest, Failure> {
    let pb::ListTasksRequest {
        tenant: _,
        context_id,
        status,
        page_size,
        page_token,
        history_length,
        status_timestamp_after,
        include_artifacts,
    } = proto;
    let history_count = history_length.map(|length| read_count(length, "history_length"));
    let since =
        status_timestamp_after.map(|timestamp| read_time(timestamp, "status_timestamp_after"));
    Ok(ListRequest {
        context_id: optional_text(context_id),
        state: read_state(status)?,
        page_size: page_size.map(|size| read_count(size, "page_size")).transpose()?,
        page_token: optional_text(page_token),
        history_length: history_count.transpose()?,
        changed_since: since.transpose()?,
        include_artifacts: include_artifacts.unwrap_or(false),
    })
}

fn read_state(number: i32) -> Result<Option<TaskState>, Failure> {
    let state = pb::TaskState::try_from(number);
    Ok(Some(
        match state.map_err(|_unknown| invalid_params("`status` must be a state of tasks"))? {
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
        },
    ))
}

/// Reads a message.
///
/// # Errors
/// Fails with `invalid-params` if a field is missing or invalid.
pub fn message(proto: pb::Message) -> Result<Message, Failure> {
    let pb::Message {
        message_id,
        context_id,
        task_id,
        role,
        parts,
        metadata: proto_metadata,
        extensions,
        reference_task_ids,
    } = proto;
    if parts.is_empty() {
        return Err(invalid_params("`message.parts` must not be empty"));
    }
    Ok(Message {
        message_id: required_text(message_id, "message.message_id")?,
        context_id: optional_text(context_id),
        task_id: optional_text(task_id),
        role: match pb::Role::try_from(role) {
            Ok(pb::Role::User) => Role::User,
            Ok(pb::Role::Agent) => Role::Agent,
            Ok(pb::Role::Unspecified) | Err(_) => {
                return Err(invalid_params("`message.role` must be ROLE_USER or ROLE_AGENT"));
            }
        },
        parts: parts.into_iter().map(part).collect::<Result<_, _>>()?,
        metadata: read_metadata(proto_metadata)?,
        extensions,
        reference_task_ids,
    })
}

/// Reads a part.
///
/// # Errors
/// Fails with `invalid-params` if a field is missing or invalid.
pub fn part(proto: pb::Part) -> Result<A2aPart, Failure> {
    let pb::Part { content, metadata: proto_metadata, filename, media_type } = proto;
    let content = match content {
        Some(pb::part::Content::Text(text)) => PartContent::Text(text),
        Some(pb::part::Content::Raw(bytes)) => PartContent::Raw(base64::encode(&bytes)),
        Some(pb::part::Content::Url(url)) => PartContent::Url(url),
        Some(pb::part::Content::Data(data)) => PartContent::Data(read_json(data)?),
        None => return Err(invalid_params("a part must have `text`, `raw`, `url` or `data`")),
    };
    let (filename, media_type) = (optional_text(filename), optional_text(media_type));
    Ok(A2aPart { content, filename, media_type, metadata: read_metadata(proto_metadata)? })
}

/// Reads a push configuration.
///
/// # Errors
/// Fails with `invalid-params` if a field is missing or invalid.
pub fn push_config(proto: pb::TaskPushNotificationConfig) -> Result<PushConfig, Failure> {
    let pb::TaskPushNotificationConfig { tenant: _, id, task_id, url, token, authentication } =
        proto;
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
