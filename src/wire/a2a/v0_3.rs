//! The dialect of A2A 0.3 on JSON-RPC: `kind` tells what a thing is, states are in lower case.
//!
//! Conversions are written by hand and cover every case, so that a new case of the core does not
//! compile until this dialect has a word for it.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use chrono::SecondsFormat;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::v1::{
    Artifact, Binding, Card, Content, History, Interface, Message, Metadata, Part, Reply, Role,
    SendRequest, Task, TaskQuery, TaskState, Version, Wait,
};

/// The parameters of `message/send`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendShape {
    message: MessageShape,
    configuration: Option<ConfigurationShape>,
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConfigurationShape {
    blocking: Option<bool>,
    history_length: Option<i64>,
    push_notification_config: Option<Value>,
    accepted_output_modes: Option<Vec<String>>,
}

/// The parameters of `tasks/get` and `tasks/cancel`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QueryShape {
    id: String,
    history_length: Option<i64>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageShape {
    kind: Option<String>,
    message_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<String>,
    role: String,
    parts: Vec<PartShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extensions: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference_task_ids: Option<Vec<String>>,
}

#[derive(Default, Serialize, Deserialize)]
struct PartShape {
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<FileShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileShape {
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskShape {
    kind: &'static str,
    id: String,
    context_id: String,
    status: StatusShape,
    artifacts: Vec<ArtifactShape>,
    history: Vec<MessageShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
}

#[derive(Serialize)]
struct StatusShape {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<MessageShape>,
    timestamp: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactShape {
    artifact_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    parts: Vec<PartShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extensions: Option<Vec<String>>,
}

fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(Code::InvalidParams, message)
}

fn read<T: serde::de::DeserializeOwned>(params: Value) -> Result<T, Failure> {
    serde_json::from_value(params).map_err(|error| invalid(format!("wrong parameters: {error}")))
}

/// Reads the parameters of `message/send`.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn send_request(params: Value) -> Result<SendRequest, Failure> {
    let file: SendShape = read(params)?;
    let configuration = file.configuration.as_ref();
    if configuration.is_some_and(|configuration| configuration.push_notification_config.is_some()) {
        let message = "this agent does not send push notifications";
        return Err(Failure::new(Code::PushUnsupported, message));
    }
    let modes = configuration.and_then(|configuration| configuration.accepted_output_modes.clone());
    let blocking = configuration.and_then(|configuration| configuration.blocking).unwrap_or(true);
    Ok(SendRequest {
        wait: if blocking { Wait::ForTheEnd } else { Wait::ForAcceptance },
        history: history(configuration.and_then(|configuration| configuration.history_length))?,
        accepted_output_modes: modes.unwrap_or_default(),
        push: None,
        message: message(file.message)?,
        metadata: file.metadata.unwrap_or_default(),
    })
}

/// Reads the parameters of `tasks/get` and `tasks/cancel`.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn task_query(params: Value) -> Result<TaskQuery, Failure> {
    let file: QueryShape = read(params)?;
    Ok(TaskQuery { id: file.id, history: history(file.history_length)? })
}

fn history(length: Option<i64>) -> Result<History, Failure> {
    match length {
        None => Ok(History::All),
        Some(length) => usize::try_from(length)
            .map(History::Last)
            .map_err(|_negative| invalid("`historyLength` must not be negative")),
    }
}

fn message(file: MessageShape) -> Result<Message, Failure> {
    if file.kind.as_deref().is_some_and(|kind| kind != "message") {
        return Err(invalid("`message.kind` must be \"message\""));
    }
    if file.message_id.is_empty() {
        return Err(invalid("`message.messageId` must not be empty"));
    }
    if file.parts.is_empty() {
        return Err(invalid("`message.parts` must not be empty"));
    }
    let role = match file.role.as_str() {
        "user" => Role::User,
        "agent" => Role::Agent,
        _ => return Err(invalid("`message.role` must be \"user\" or \"agent\"")),
    };
    let parts: Result<_, _> = file.parts.into_iter().map(part).collect();
    Ok(Message {
        message_id: file.message_id,
        context_id: file.context_id,
        task_id: file.task_id,
        role,
        parts: parts?,
        metadata: file.metadata.unwrap_or_default(),
        extensions: file.extensions.unwrap_or_default(),
        reference_task_ids: file.reference_task_ids.unwrap_or_default(),
    })
}

fn part(file: PartShape) -> Result<Part, Failure> {
    let metadata = file.metadata.unwrap_or_default();
    let plain = |content| Part { content, filename: None, media_type: None, metadata };
    match (file.kind.as_deref(), file.text, file.data, file.file) {
        (Some("text") | None, Some(text), None, None) => Ok(plain(Content::Text(text))),
        (Some("data") | None, None, Some(data), None) => Ok(plain(Content::Data(data))),
        (Some("file") | None, None, None, Some(file)) => {
            let content = match (file.bytes, file.uri) {
                (Some(bytes), None) => Content::Raw(bytes),
                (None, Some(uri)) => Content::Url(uri),
                _ => return Err(invalid("a file part must have either `bytes` or `uri`")),
            };
            let part = plain(content);
            Ok(Part { filename: file.name, media_type: file.mime_type, ..part })
        }
        _ => {
            Err(invalid("a part must be of kind \"text\", \"file\" or \"data\" and have its field"))
        }
    }
}

/// The word for a state.
#[must_use]
pub const fn state(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted => "submitted",
        TaskState::Working => "working",
        TaskState::InputRequired => "input-required",
        TaskState::Completed => "completed",
        TaskState::Canceled => "canceled",
        TaskState::Failed => "failed",
        TaskState::Rejected => "rejected",
        TaskState::AuthRequired => "auth-required",
    }
}

/// The answer to a message as JSON.
///
/// # Errors
/// `internal`, when metadata cannot be written.
pub fn reply(reply: Reply) -> Result<Value, Failure> {
    match reply {
        Reply::Task(answer) => task(answer),
        Reply::Message(message) => serde_json::to_value(MessageShape::from(message))
            .map_err(|_| Failure::new(Code::Internal, "the message could not be written as JSON")),
    }
}

/// A task as JSON.
///
/// # Errors
/// `internal`, when metadata cannot be written.
pub fn task(task: Task) -> Result<Value, Failure> {
    let shape = TaskShape {
        kind: "task",
        id: task.id,
        context_id: task.context_id,
        status: StatusShape {
            state: state(task.status.state),
            message: task.status.message.map(MessageShape::from),
            timestamp: task.status.timestamp.to_rfc3339_opts(SecondsFormat::Millis, true),
        },
        artifacts: task.artifacts.into_iter().map(ArtifactShape::from).collect(),
        history: task.history.into_iter().map(MessageShape::from).collect(),
        metadata: some(task.metadata),
    };
    let unwritten = |_| Failure::new(Code::Internal, "the task could not be written as JSON");
    serde_json::to_value(shape).map_err(unwritten)
}

impl From<Message> for MessageShape {
    fn from(message: Message) -> Self {
        let role = match message.role {
            Role::User => "user",
            Role::Agent => "agent",
        };
        Self {
            kind: Some("message".to_owned()),
            message_id: message.message_id,
            context_id: message.context_id,
            task_id: message.task_id,
            role: role.to_owned(),
            parts: message.parts.into_iter().map(PartShape::from).collect(),
            metadata: some(message.metadata),
            extensions: listed(message.extensions),
            reference_task_ids: listed(message.reference_task_ids),
        }
    }
}

impl From<Artifact> for ArtifactShape {
    fn from(artifact: Artifact) -> Self {
        let parts = artifact.parts.into_iter().map(PartShape::from).collect();
        Self {
            artifact_id: artifact.artifact_id,
            name: artifact.name,
            description: artifact.description,
            parts,
            metadata: some(artifact.metadata),
            extensions: listed(artifact.extensions),
        }
    }
}

impl From<Part> for PartShape {
    fn from(part: Part) -> Self {
        let metadata = some(part.metadata);
        let (name, mime_type) = (part.filename, part.media_type);
        let file = |bytes, uri| Some(FileShape { bytes, uri, name, mime_type });
        let kind = |kind: &str| Some(kind.to_owned());
        let plain = Self { metadata, ..Self::default() };
        match part.content {
            Content::Text(text) => Self { kind: kind("text"), text: Some(text), ..plain },
            Content::Data(data) => Self { kind: kind("data"), data: Some(object(data)), ..plain },
            Content::Raw(bytes) => {
                Self { kind: kind("file"), file: file(Some(bytes), None), ..plain }
            }
            Content::Url(uri) => Self { kind: kind("file"), file: file(None, Some(uri)), ..plain },
        }
    }
}

/// Data of 0.3 is an object; any other value travels inside one.
fn object(data: Value) -> Value {
    if data.is_object() { data } else { json!({"value": data}) }
}

fn some(metadata: Metadata) -> Option<Metadata> {
    Some(metadata).filter(|metadata| !metadata.is_empty())
}

fn listed(list: Vec<String>) -> Option<Vec<String>> {
    Some(list).filter(|list| !list.is_empty())
}

/// A card as JSON.
#[must_use]
pub fn card(card: &Card) -> Value {
    let skills = card.skills.iter().map(|skill| {
        json!({"id": skill.id, "name": skill.name, "description": skill.description,
            "tags": skill.tags})
    });
    let jsonrpc =
        |way: &&Interface| (way.binding, way.version) == (Binding::JsonRpc, Version::V0_3);
    let url = card.interfaces.iter().find(jsonrpc).map(|way| &way.url);
    json!({
        "protocolVersion": "0.3.0",
        "name": card.name,
        "description": card.description,
        "version": card.version,
        "url": url,
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": url, "transport": "JSONRPC"}],
        "capabilities": {
            "streaming": card.streaming,
            "pushNotifications": card.push,
            "stateTransitionHistory": false,
        },
        "defaultInputModes": card.input_modes,
        "defaultOutputModes": card.output_modes,
        "skills": skills.collect::<Vec<_>>(),
        "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        "security": [{"bearer": []}],
        "supportsAuthenticatedExtendedCard": card.extended,
    })
}
