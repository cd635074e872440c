//! What callers of 0.3 say, in core shapes.

use algonius_actors::model::failure::Failure;

use crate::serve::grpc::proto::a2a_v1 as pb;
use crate::serve::grpc::value::{base64, count, filled, invalid, metadata, needed, object, some};
use crate::wire::a2a::v1::{
    Content, History, Message, Part, PushAuthentication, PushConfig, Role, SendRequest, Wait,
};

/// Without a configuration the answer waits: the wire cannot tell `blocking: false` from nothing.
pub(super) fn send_request(read: pb::SendMessageRequest) -> Result<SendRequest, Failure> {
    let message = message(needed(read.request, "request")?)?;
    let metadata = metadata(read.metadata)?;
    let Some(configuration) = read.configuration else {
        return Ok(SendRequest {
            message,
            wait: Wait::ForTheEnd,
            history: History::All,
            accepted_output_modes: Vec::new(),
            push: None,
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
        wait: if blocking { Wait::ForTheEnd } else { Wait::ForAcceptance },
        history: history(history_length)?,
        accepted_output_modes,
        push: push_notification.map(|config| push(None, config)).transpose()?,
        metadata,
    })
}

/// 0 is all of it.
pub(super) fn history(length: i32) -> Result<History, Failure> {
    match count(length, "history_length")? {
        0 => Ok(History::All),
        length => Ok(History::Last(length)),
    }
}

pub(super) fn message(read: pb::Message) -> Result<Message, Failure> {
    let pb::Message { message_id, context_id, task_id, role, content, metadata: data, extensions } =
        read;
    if content.is_empty() {
        return Err(invalid("`request.content` must not be empty"));
    }
    Ok(Message {
        message_id: filled(message_id, "request.message_id")?,
        context_id: some(context_id),
        task_id: some(task_id),
        role: match pb::Role::try_from(role) {
            Ok(pb::Role::User) => Role::User,
            Ok(pb::Role::Agent) => Role::Agent,
            Ok(pb::Role::Unspecified) | Err(_) => {
                return Err(invalid("`request.role` must be ROLE_USER or ROLE_AGENT"));
            }
        },
        parts: content.into_iter().map(part).collect::<Result<_, _>>()?,
        metadata: metadata(data)?,
        extensions,
        reference_task_ids: Vec::new(),
    })
}

pub(super) fn part(read: pb::Part) -> Result<Part, Failure> {
    let empty = || invalid("a part must have a text, a file or data");
    let metadata = metadata(read.metadata)?;
    let plain = |content| Part { content, filename: None, media_type: None, metadata };
    Ok(match read.part.ok_or_else(empty)? {
        pb::part::Part::Text(text) => plain(Content::Text(text)),
        pb::part::Part::Data(data) => {
            plain(Content::Data(object(data.data.unwrap_or_default())?.into()))
        }
        pb::part::Part::File(file) => {
            let content = match file.file {
                Some(pb::file_part::File::FileWithUri(uri)) => Content::Url(uri),
                Some(pb::file_part::File::FileWithBytes(bytes)) => Content::Raw(base64(&bytes)),
                None => return Err(invalid("a file must have its bytes or its address")),
            };
            let (filename, media_type) = (some(file.name), some(file.mime_type));
            Part { filename, media_type, ..plain(content) }
        }
    })
}

/// The task's id in `tasks/ID`.
pub(super) fn task_name(name: &str) -> Result<&str, Failure> {
    let id = name.strip_prefix("tasks/").filter(|id| !id.is_empty() && !id.contains('/'));
    id.ok_or_else(|| invalid("a task's name must be `tasks/ID`"))
}

/// The ids in `tasks/ID/pushNotificationConfigs/ID`; the second may be left out.
pub(super) fn config_name(name: &str) -> Result<(&str, Option<&str>), Failure> {
    let Some((task, config)) = name.split_once("/pushNotificationConfigs") else {
        return task_name(name).map(|task| (task, None));
    };
    match config.strip_prefix('/').unwrap_or(config) {
        "" => Ok((task_name(task)?, None)),
        id if config.starts_with('/') && !id.contains('/') => Ok((task_name(task)?, Some(id))),
        _ => Err(invalid("a registration's name must be `tasks/ID/pushNotificationConfigs/ID`")),
    }
}

pub(super) fn registration(
    read: pb::CreateTaskPushNotificationConfigRequest,
) -> Result<PushConfig, Failure> {
    let task = task_name(&read.parent)?.to_owned();
    let config = needed(read.config, "config")?.push_notification_config;
    let config = push(Some(task), needed(config, "config.push_notification_config")?)?;
    Ok(PushConfig { id: some(read.config_id).or(config.id), ..config })
}

pub(super) fn push(
    task_id: Option<String>,
    read: pb::PushNotificationConfig,
) -> Result<PushConfig, Failure> {
    let pb::PushNotificationConfig { id, url, token, authentication } = read;
    Ok(PushConfig {
        id: some(id),
        task_id,
        url: filled(url, "url")?,
        token: some(token),
        authentication: authentication.and_then(credentials),
    })
}

/// Of several schemes the first counts; credentials alone are a bearer's.
fn credentials(read: pb::AuthenticationInfo) -> Option<PushAuthentication> {
    let credentials = some(read.credentials);
    let scheme = read.schemes.into_iter().find(|scheme| !scheme.is_empty());
    let scheme = scheme.or_else(|| credentials.as_ref().map(|_| "Bearer".to_owned()))?;
    Some(PushAuthentication { scheme, credentials })
}
