//! The dialect of A2A 0.3 on JSON-RPC: `kind` tells what a thing is, states are in lower case.
//!
//! Conversions are written by hand and cover every case, so that a new case of the core does not
//! compile until this dialect has a word for it.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use chrono::SecondsFormat;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use super::v1::{
    Artifact, Binding, Card, Content, History, Interface, Message, Metadata, Part, Reply, Role,
    SendRequest, Task, TaskQuery, TaskState, Version, Wait,
};

/// The parameters of `message/send`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendShape {
    message: Object<MessageShape>,
    configuration: Option<Object<ConfigurationShape>>,
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
    parts: Vec<Object<PartShape>>,
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
    file: Option<Object<FileShape>>,
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
    parts: Vec<Object<PartShape>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extensions: Option<Vec<String>>,
}

/// An object. What is derived would take its fields from a list as well, which no dialect knows.
#[derive(Serialize)]
#[serde(transparent)]
struct Object<T>(T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let fields = Map::deserialize(from)?;
        serde_json::from_value(Value::Object(fields)).map(Self).map_err(D::Error::custom)
    }
}

fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(Code::InvalidParams, message)
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, Failure> {
    let read = serde_json::from_value(params).map(|Object(shape)| shape);
    read.map_err(|error| invalid(format!("wrong parameters: {error}")))
}

/// Reads the parameters of `message/send`.
///
/// # Errors
/// `invalid-params`, naming the field.
pub fn send_request(params: Value) -> Result<SendRequest, Failure> {
    let file: SendShape = read(params)?;
    let configuration = file.configuration.map(|Object(configuration)| configuration);
    let configuration = configuration.as_ref();
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
        message: message(file.message.0)?,
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
    // Clients whose shapes come from protobuf write an id that is not there as an empty text.
    let given = |id: Option<String>| id.filter(|id| !id.is_empty());
    let parts: Result<_, _> = file.parts.into_iter().map(|Object(shape)| part(shape)).collect();
    Ok(Message {
        message_id: file.message_id,
        context_id: given(file.context_id),
        task_id: given(file.task_id),
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
        (Some("file") | None, None, None, Some(Object(file))) => {
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
        Reply::Message(message) => {
            serde_json::to_value(MessageShape::from(message)).map_err(|_unwritten| {
                Failure::new(Code::Internal, "the message could not be written as JSON")
            })
        }
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
            parts: message.parts.into_iter().map(PartShape::from).map(Object).collect(),
            metadata: some(message.metadata),
            extensions: listed(message.extensions),
            reference_task_ids: listed(message.reference_task_ids),
        }
    }
}

impl From<Artifact> for ArtifactShape {
    fn from(artifact: Artifact) -> Self {
        let parts = artifact.parts.into_iter().map(PartShape::from).map(Object).collect();
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
        let file = |bytes, uri| Some(Object(FileShape { bytes, uri, name, mime_type }));
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

#[cfg(test)]
mod tests {
    use super::super::v1::TaskStatus;
    use super::*;

    fn message(parts: Vec<Part>) -> Message {
        Message {
            message_id: "m".to_owned(),
            context_id: Some("c".to_owned()),
            task_id: Some("t".to_owned()),
            role: Role::User,
            parts,
            metadata: Metadata::new(),
            extensions: vec!["urn:e".to_owned()],
            reference_task_ids: vec!["r".to_owned()],
        }
    }

    #[test]
    fn a_task_is_spelled_as_the_protocol_spells_it() {
        let file = |content| Part {
            filename: Some("f".to_owned()),
            media_type: Some("text/plain".to_owned()),
            ..Part::of(content)
        };
        let told = task(Task {
            id: "t".to_owned(),
            context_id: "c".to_owned(),
            status: TaskStatus {
                state: TaskState::InputRequired,
                message: Some(Message { role: Role::Agent, ..message(vec![Part::text("what?")]) }),
                timestamp: "2030-01-31T12:00:00.0009Z".parse().expect("a time"),
            },
            artifacts: vec![Artifact {
                artifact_id: "a".to_owned(),
                name: None,
                description: Some("d".to_owned()),
                metadata: Metadata::new(),
                extensions: Vec::new(),
                parts: vec![
                    Part::of(Content::Data(json!(5))),
                    file(Content::Raw("eA==".to_owned())),
                ],
            }],
            history: vec![message(vec![file(Content::Url("https://example.org".to_owned()))])],
            metadata: Metadata::new(),
        });
        let ids = json!({
            "kind": "message", "messageId": "m", "contextId": "c", "taskId": "t",
            "extensions": ["urn:e"], "referenceTaskIds": ["r"],
        });
        let said = |role: &str, parts: Value| {
            let mut said = ids.clone();
            said["role"] = json!(role);
            said["parts"] = parts;
            said
        };
        let file = |key: &str, value: &str| {
            let file = json!({key: value, "name": "f", "mimeType": "text/plain"});
            json!({"kind": "file", "file": file})
        };
        let wanted = json!({
            "kind": "task",
            "id": "t",
            "contextId": "c",
            "status": {
                "state": "input-required",
                "message": said("agent", json!([{"kind": "text", "text": "what?"}])),
                "timestamp": "2030-01-31T12:00:00.000Z",
            },
            "artifacts": [{
                "artifactId": "a",
                "description": "d",
                "parts": [{"kind": "data", "data": {"value": 5}}, file("bytes", "eA==")],
            }],
            "history": [said("user", json!([file("uri", "https://example.org")]))],
        });
        assert_eq!(told.expect("a task"), wanted);
    }

    #[test]
    fn states_are_the_words_of_the_protocol() {
        let words: Vec<_> = TaskState::ALL.iter().map(|state| super::state(*state)).collect();
        assert_eq!(
            words.join(" "),
            "submitted working input-required completed canceled failed rejected auth-required"
        );
    }

    #[test]
    fn what_is_said_is_read_whole_and_waits_for_the_end_unless_told_otherwise() {
        let parts = json!([
            {"kind": "text", "text": "x"},
            {"kind": "data", "data": {"a": 1}},
            {"kind": "file", "file": {"bytes": "eA==", "name": "f", "mimeType": "text/plain"}},
        ]);
        let said = json!({
            "kind": "message", "messageId": "m", "contextId": "c", "taskId": "t", "role": "user",
            "parts": parts, "metadata": {"k": 1}, "not known": true,
        });
        let read = |configuration: Value| {
            let params = json!({"message": said, "configuration": configuration});
            send_request(params).expect("a request")
        };
        let SendRequest { message, wait, history, .. } = read(Value::Null);
        let contents: Vec<_> = message.parts.into_iter().map(|part| part.content).collect();
        let raw = Content::Raw("eA==".to_owned());
        let wanted = [Content::Text("x".to_owned()), Content::Data(json!({"a": 1})), raw];
        assert_eq!((contents.as_slice(), message.metadata["k"].as_i64()), (&wanted[..], Some(1)));
        assert_eq!(
            (message.context_id.as_deref(), message.task_id.as_deref()),
            (Some("c"), Some("t"))
        );
        assert_eq!((wait, history), (Wait::ForTheEnd, History::All));
        assert_eq!(read(json!({})).wait, Wait::ForTheEnd);
        let quick = read(json!({"blocking": false, "historyLength": 0}));
        assert_eq!((quick.wait, quick.history), (Wait::ForAcceptance, History::Last(0)));
    }

    #[test]
    fn an_empty_id_of_a_task_or_a_conversation_is_none() {
        let parts = json!([{"kind": "text", "text": "x"}]);
        let message = json!({
            "messageId": "m", "contextId": "", "taskId": "", "role": "user", "parts": parts,
        });
        let read = send_request(json!({"message": message})).expect("a request").message;
        assert_eq!((read.context_id, read.task_id), (None, None));
    }

    #[test]
    fn parameters_of_the_wrong_shape_are_refused_also_as_lists_in_the_order_of_our_fields() {
        let part = json!({"kind": "text", "text": "x"});
        let with_parts =
            |parts: Value| json!({"message": {"messageId": "m", "role": "user", "parts": parts}});
        assert!(send_request(with_parts(json!([part]))).is_ok());
        for params in [
            Value::Null,
            json!({}),
            json!([{"messageId": "m", "role": "user", "parts": [part]}, null, null]),
            json!({"message": ["message", "m", null, null, "user", [part], null]}),
            with_parts(json!([["text", "x", null, null, null]])),
            with_parts(json!([{"kind": "file", "file": ["eA==", null, null, null]}])),
            with_parts(json!([{"kind": "file", "file": {"bytes": "", "uri": ""}}])),
            with_parts(json!([{"kind": "text", "data": {}}])),
            with_parts(json!([{"kind": "other", "text": "x"}])),
            with_parts(json!([])),
            with_parts(json!("x")),
            json!({"message": {"messageId": "", "role": "user", "parts": [part]}}),
            json!({"message": {"messageId": "m", "role": "root", "parts": [part]}}),
        ] {
            let refusal = send_request(params.clone()).err().map(|failure| failure.code);
            assert_eq!(refusal, Some(Code::InvalidParams), "{params}");
        }
        for params in
            [json!(["t", null]), json!({"id": 5}), json!({"id": "t", "historyLength": -1})]
        {
            let refusal = task_query(params.clone()).err().map(|failure| failure.code);
            assert_eq!(refusal, Some(Code::InvalidParams), "{params}");
        }
    }
}
