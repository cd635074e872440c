//! Conversion of core shapes into messages of 0.3.

use std::collections::HashMap;

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use crate::grpc::conversions::{decode_base64, to_proto_struct, to_timestamp, write_metadata};
use crate::grpc::proto::a2a_v1 as pb;
use crate::v0_3::rest::resource_name;
use crate::v1::{
    A2aPart, Artifact, ArtifactUpdate, Binding, Card, CardSecurity, Message, Metadata, PartContent,
    ProtocolVersion, ProviderOrganization, PushConfig, Role, SendResponse, Skill, StatusUpdate,
    StreamEvent, Task, TaskState, TaskStatus,
};

/// Writes the answer to a sent message.
///
/// # Errors
/// Fails if a value does not fit the wire format.
pub fn send_response(reply: SendResponse) -> Result<pb::SendMessageResponse, Failure> {
    use pb::send_message_response::Payload;
    let payload = match reply {
        SendResponse::Task(answer) => Payload::Task(task(answer)?),
        SendResponse::Message(answer) => Payload::Msg(message(answer)?),
    };
    Ok(pb::SendMessageResponse { payload: Some(payload) })
}

/// Writes an event of a stream.
///
/// # Errors
/// Fails if a value does not fit the wire format.
pub fn event(event: StreamEvent) -> Result<pb::StreamResponse, Failure> {
    use pb::stream_response::Payload;
    let payload = match event {
        StreamEvent::Task(full_task) => Payload::Task(task(full_task)?),
        StreamEvent::Message(answer) => Payload::Msg(message(answer)?),
        StreamEvent::Status(update) => Payload::StatusUpdate(status_update(update)?),
        StreamEvent::Artifact(update) => Payload::ArtifactUpdate(artifact_update(update)?),
    };
    Ok(pb::StreamResponse { payload: Some(payload) })
}

fn status_update(update: StatusUpdate) -> Result<pb::TaskStatusUpdateEvent, Failure> {
    let StatusUpdate { task_id, context_id, status: task_status, is_final, metadata } = update;
    Ok(pb::TaskStatusUpdateEvent {
        task_id,
        context_id,
        status: Some(status(task_status)?),
        r#final: is_final,
        metadata: write_metadata(metadata),
    })
}

fn artifact_update(update: ArtifactUpdate) -> Result<pb::TaskArtifactUpdateEvent, Failure> {
    let ArtifactUpdate {
        task_id,
        context_id,
        artifact: core_artifact,
        append,
        last_chunk,
        metadata,
    } = update;
    Ok(pb::TaskArtifactUpdateEvent {
        task_id,
        context_id,
        artifact: Some(artifact(core_artifact)?),
        append,
        last_chunk,
        metadata: write_metadata(metadata),
    })
}

/// Writes a task.
///
/// # Errors
/// Fails if a value does not fit the wire format.
pub fn task(task: Task) -> Result<pb::Task, Failure> {
    let Task { id, context_id, status: task_status, artifacts, history, metadata } = task;
    Ok(pb::Task {
        id,
        context_id,
        status: Some(status(task_status)?),
        artifacts: artifacts.into_iter().map(artifact).collect::<Result<_, _>>()?,
        history: history.into_iter().map(message).collect::<Result<_, _>>()?,
        metadata: write_metadata(metadata),
    })
}

fn status(status: TaskStatus) -> Result<pb::TaskStatus, Failure> {
    let TaskStatus { state: task_state, message: status_message, timestamp } = status;
    Ok(pb::TaskStatus {
        state: state(task_state).into(),
        update: status_message.map(message).transpose()?,
        timestamp: Some(to_timestamp(timestamp)),
    })
}

const fn state(state: TaskState) -> pb::TaskState {
    match state {
        TaskState::Submitted => pb::TaskState::Submitted,
        TaskState::Working => pb::TaskState::Working,
        TaskState::InputRequired => pb::TaskState::InputRequired,
        TaskState::Completed => pb::TaskState::Completed,
        TaskState::Canceled => pb::TaskState::Cancelled,
        TaskState::Failed => pb::TaskState::Failed,
        TaskState::Rejected => pb::TaskState::Rejected,
        TaskState::AuthRequired => pb::TaskState::AuthRequired,
    }
}

/// Converts a message. 0.3 has no field for the tasks to which a message refers.
pub fn message(message: Message) -> Result<pb::Message, Failure> {
    let Message {
        message_id,
        context_id,
        task_id,
        role,
        parts,
        metadata,
        extensions,
        reference_task_ids: _,
    } = message;
    let role = match role {
        Role::User => pb::Role::User,
        Role::Agent => pb::Role::Agent,
    };
    Ok(pb::Message {
        message_id,
        context_id: context_id.unwrap_or_default(),
        task_id: task_id.unwrap_or_default(),
        role: role.into(),
        content: parts.into_iter().map(part).collect::<Result<_, _>>()?,
        metadata: write_metadata(metadata),
        extensions,
    })
}

fn artifact(artifact: Artifact) -> Result<pb::Artifact, Failure> {
    let Artifact { artifact_id, name, description, parts, metadata, extensions } = artifact;
    Ok(pb::Artifact {
        artifact_id,
        name: name.unwrap_or_default(),
        description: description.unwrap_or_default(),
        parts: parts.into_iter().map(part).collect::<Result<_, _>>()?,
        metadata: write_metadata(metadata),
        extensions,
    })
}

/// Converts a part. In 0.3 only a file has a name and a media type.
fn part(part: A2aPart) -> Result<pb::Part, Failure> {
    let A2aPart { content, filename, media_type, metadata } = part;
    let file = |file| {
        let (mime_type, name) = (media_type.unwrap_or_default(), filename.unwrap_or_default());
        pb::part::Part::File(pb::FilePart { mime_type, name, file: Some(file) })
    };
    let part = match content {
        PartContent::Text(text) => pb::part::Part::Text(text),
        PartContent::Raw(raw) => file(pb::file_part::File::FileWithBytes(decode_base64(&raw)?)),
        PartContent::Url(url) => file(pb::file_part::File::FileWithUri(url)),
        PartContent::Data(data) => pb::part::Part::Data(pb::DataPart {
            data: Some(to_proto_struct(wrap_unless_object(data))),
        }),
    };
    Ok(pb::Part { part: Some(part), metadata: write_metadata(metadata) })
}

/// Wraps data that is not an object in an object, as 0.3 requires.
fn wrap_unless_object(data: Value) -> Metadata {
    match data {
        Value::Object(object) => object,
        data @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)) => Metadata::from_iter([("value".to_owned(), data)]),
    }
}

/// Writes a push configuration.
pub fn push_config(config: PushConfig) -> pb::TaskPushNotificationConfig {
    let PushConfig { id, task_id, url, token, authentication } = config;
    let task_id = task_id.unwrap_or_default();
    let id = id.unwrap_or_else(|| task_id.clone());
    let authentication = authentication.map(|auth| pb::AuthenticationInfo {
        schemes: vec![auth.scheme],
        credentials: auth.credentials.unwrap_or_default(),
    });
    pb::TaskPushNotificationConfig {
        name: resource_name::push_config_name(&task_id, &id),
        push_notification_config: Some(pb::PushNotificationConfig {
            id,
            url,
            token: token.unwrap_or_default(),
            authentication,
        }),
    }
}

/// Writes a card.
pub fn card(card: Card) -> pb::AgentCard {
    let mut interfaces = card
        .interfaces
        .into_iter()
        .filter(|interface| interface.version == ProtocolVersion::V0_3)
        .map(|interface| pb::AgentInterface {
            url: interface.url,
            transport: binding_name(interface.binding).to_owned(),
        });
    // 0.3 has the preferred interface at the top, and recommends to repeat it in the list.
    let preferred = interfaces.next().unwrap_or_default();
    let (security_schemes, security) = security(card.security);
    let extensions =
        card.capabilities.extensions.into_iter().map(|(uri, description, required)| {
            pb::AgentExtension { uri, description, required, params: None }
        });
    let details = card.details;
    pb::AgentCard {
        protocol_version: "0.3.0".to_owned(),
        name: card.name,
        description: card.description,
        url: preferred.url.clone(),
        preferred_transport: preferred.transport.clone(),
        additional_interfaces: std::iter::once(preferred).chain(interfaces).collect(),
        provider: details.provider.map(provider),
        version: card.version,
        documentation_url: details.documentation_url.unwrap_or_default(),
        capabilities: Some(pb::AgentCapabilities {
            streaming: card.capabilities.streaming,
            push_notifications: card.capabilities.push_notifications,
            extensions: extensions.collect(),
        }),
        security_schemes,
        security,
        default_input_modes: card.input_modes,
        default_output_modes: card.output_modes,
        skills: card.skills.into_iter().map(skill).collect(),
        supports_authenticated_extended_card: card.capabilities.has_extended_card,
        signatures: Vec::new(),
        icon_url: details.icon_url.unwrap_or_default(),
    }
}

const fn binding_name(binding: Binding) -> &'static str {
    match binding {
        Binding::JsonRpc => "JSONRPC",
        Binding::HttpJson => "HTTP+JSON",
        Binding::Grpc => "GRPC",
    }
}

fn skill(skill: Skill) -> pb::AgentSkill {
    let Skill { id, name, description, tags, examples, input_modes, output_modes } = skill;
    pb::AgentSkill {
        id,
        name,
        description,
        tags,
        examples,
        input_modes,
        output_modes,
        ..pb::AgentSkill::default()
    }
}

fn provider(provider: ProviderOrganization) -> pb::AgentProvider {
    let ProviderOrganization { organization, url } = provider;
    pb::AgentProvider { url, organization }
}

fn security(security: CardSecurity) -> (HashMap<String, pb::SecurityScheme>, Vec<pb::Security>) {
    use pb::security_scheme::Scheme;
    let (name, scheme) = match security {
        CardSecurity::NoAuthentication => return (HashMap::new(), Vec::new()),
        CardSecurity::Bearer => {
            let scheme = pb::HttpAuthSecurityScheme {
                scheme: "bearer".to_owned(),
                ..pb::HttpAuthSecurityScheme::default()
            };
            ("bearer", Scheme::HttpAuthSecurityScheme(scheme))
        }
        CardSecurity::ApiKey(header) => {
            let (location, description) = ("header".to_owned(), String::new());
            let scheme = pb::ApiKeySecurityScheme { description, location, name: header };
            ("apiKey", Scheme::ApiKeySecurityScheme(scheme))
        }
    };
    let schemes = HashMap::from([(name.to_owned(), pb::StringList::default())]);
    let scheme = pb::SecurityScheme { scheme: Some(scheme) };
    (HashMap::from([(name.to_owned(), scheme)]), vec![pb::Security { schemes }])
}
