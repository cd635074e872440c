//! Conversion of messages of 0.3 into core shapes.

use algonius_actors::model::failure::Failure;

use crate::base64;
use crate::grpc::conversions::{
    invalid_params, optional_text, read_count, read_metadata, read_object, required_field,
    required_text,
};
use crate::grpc::proto::a2a_v1 as pb;
use crate::v0_3::rest::resource_name;
use crate::v1::{
    A2aPart, HistoryLength, Message, PartContent, PushAuthentication, PushConfig, Role, SendMode,
    SendRequest,
};

/// Converts a request. Without a configuration the answer waits for the end: the wire format cannot distinguish
/// `blocking: false` from an absent field.
pub fn send_request(proto: pb::SendMessageRequest) -> Result<SendRequest, Failure> {
    let message = message(required_field(proto.request, "request")?)?;
    let metadata = read_metadata(proto.metadata)?;
    let Some(configuration) = proto.configuration else {
        return Ok(SendRequest {
            message,
            send_mode: SendMode::Blocking,
            history_length: HistoryLength::All,
            accepted_output_modes: Vec::new(),
            push_config: None,
            metadata,
        });
    };
    let pb::SendMessageConfiguration {
        accepted_output_modes,
        push_notification,
        history_length,
        blocking,
    } = configuration;
    Ok(SendRequest {
        message,
        send_mode: if blocking { SendMode::Blocking } else { SendMode::NonBlocking },
        history_length: read_history_length(history_length)?,
        accepted_output_modes,
        push_config: push_notification.map(|config| push_config(None, config)).transpose()?,
        metadata,
    })
}

/// Converts the length of the history; 0 means the whole history.
pub fn read_history_length(length: i32) -> Result<HistoryLength, Failure> {
    match read_count(length, "history_length")? {
        // The field is not optional on the wire, so 0 cannot be distinguished from absent.
        0 => Ok(HistoryLength::All),
        length => Ok(HistoryLength::Last(length)),
    }
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
        content,
        metadata: proto_metadata,
        extensions,
    } = proto;
    if content.is_empty() {
        return Err(invalid_params("`request.content` must not be empty"));
    }
    Ok(Message {
        message_id: required_text(message_id, "request.message_id")?,
        context_id: optional_text(context_id),
        task_id: optional_text(task_id),
        role: match pb::Role::try_from(role) {
            Ok(pb::Role::User) => Role::User,
            Ok(pb::Role::Agent) => Role::Agent,
            Ok(pb::Role::Unspecified) | Err(_) => {
                return Err(invalid_params("`request.role` must be ROLE_USER or ROLE_AGENT"));
            }
        },
        parts: content.into_iter().map(part).collect::<Result<_, _>>()?,
        metadata: read_metadata(proto_metadata)?,
        extensions,
        reference_task_ids: Vec::new(),
    })
}

/// Reads a part.
///
/// # Errors
/// Fails with `invalid-params` if a field is missing or invalid.
pub fn part(proto: pb::Part) -> Result<A2aPart, Failure> {
    let empty_part = || invalid_params("a part must have a text, a file or data");
    let metadata = read_metadata(proto.metadata)?;
    let part_of = |content| A2aPart { content, filename: None, media_type: None, metadata };
    Ok(match proto.part.ok_or_else(empty_part)? {
        pb::part::Part::Text(text) => part_of(PartContent::Text(text)),
        pb::part::Part::Data(data) => {
            part_of(PartContent::Data(read_object(data.data.unwrap_or_default())?.into()))
        }
        pb::part::Part::File(file) => {
            let content = match file.file {
                Some(pb::file_part::File::FileWithUri(uri)) => PartContent::Url(uri),
                Some(pb::file_part::File::FileWithBytes(bytes)) => {
                    PartContent::Raw(base64::encode(&bytes))
                }
                None => return Err(invalid_params("a file must have its bytes or its address")),
            };
            let (filename, media_type) = (optional_text(file.name), optional_text(file.mime_type));
            A2aPart { filename, media_type, ..part_of(content) }
        }
    })
}

/// Returns the id of the task in `tasks/ID`.
pub fn parse_task_name(name: &str) -> Result<&str, Failure> {
    resource_name::parse_task_id(name)
        .ok_or_else(|| invalid_params("a task's name must be `tasks/ID`"))
}

/// Returns the ids in `tasks/ID/pushNotificationConfigs/ID`; the second one is optional.
pub fn parse_push_config_name(name: &str) -> Result<(&str, Option<&str>), Failure> {
    let text = "the name of a push configuration must be `tasks/ID/pushNotificationConfigs/ID`";
    resource_name::parse_push_config_ids(name).ok_or_else(|| invalid_params(text))
}

/// Reads a push configuration.
///
/// # Errors
/// Fails with `invalid-params` if a field is missing or invalid.
pub fn push_config_request(
    proto: pb::CreateTaskPushNotificationConfigRequest,
) -> Result<PushConfig, Failure> {
    let task_id = parse_task_name(&proto.parent)?.to_owned();
    let config = required_field(proto.config, "config")?.push_notification_config;
    let config =
        push_config(Some(task_id), required_field(config, "config.push_notification_config")?)?;
    Ok(PushConfig { id: optional_text(proto.config_id).or(config.id), ..config })
}

/// Reads a push configuration.
///
/// # Errors
/// Fails with `invalid-params` if a field is missing or invalid.
pub fn push_config(
    task_id: Option<String>,
    proto: pb::PushNotificationConfig,
) -> Result<PushConfig, Failure> {
    let pb::PushNotificationConfig { id, url, token, authentication } = proto;
    Ok(PushConfig {
        id: optional_text(id),
        task_id,
        url: required_text(url, "url")?,
        token: optional_text(token),
        authentication: authentication.map(read_authentication).transpose()?.flatten(),
    })
}

/// Converts credentials; the first of several schemes is used.
fn read_authentication(
    proto: pb::AuthenticationInfo,
) -> Result<Option<PushAuthentication>, Failure> {
    let credentials = optional_text(proto.credentials);
    match (proto.schemes.into_iter().find(|scheme| !scheme.is_empty()), credentials) {
        (Some(scheme), credentials) => Ok(Some(PushAuthentication { scheme, credentials })),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(invalid_params("`authentication.schemes` must not be empty")),
    }
}
