//! Conversion of core shapes into messages of 1.0.

use std::collections::HashMap;

use algonius_actors::model::failure::Failure;

use crate::grpc::conversions::{
    decode_base64, saturating_i32, to_proto_value, to_timestamp, write_metadata,
};
use crate::grpc::proto::lf_a2a_v1 as pb;
use crate::v1::{
    A2aPart, Artifact, ArtifactUpdate, Binding, Card, CardSecurity, Interface, ListPage, Message,
    PartContent, ProtocolVersion, ProviderOrganization, PushConfig, Role, SendResponse, Skill,
    StatusUpdate, StreamEvent, Task, TaskState, TaskStatus,
};

/// Writes the answer to a sent message.
///
/// # Errors
/// Fails if a value does not fit the wire format.
pub fn send_response(reply: SendResponse) -> Result<pb::SendMessageResponse, Failure> {
    use pb::send_message_response::Payload;
    let payload = match reply {
        SendResponse::Task(answer) => Payload::Task(task(answer)?),
        SendResponse::Message(answer) => Payload::Message(message(answer)?),
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
        StreamEvent::Message(answer) => Payload::Message(message(answer)?),
        StreamEvent::Status(update) => Payload::StatusUpdate(status_update(update)?),
        StreamEvent::Artifact(update) => Payload::ArtifactUpdate(artifact_update(update)?),
    };
    Ok(pb::StreamResponse { payload: Some(payload) })
}

/// Converts a status update. 1.0 has no field for the end of a stream; the stream simply ends.
fn status_update(update: StatusUpdate) -> Result<pb::TaskStatusUpdateEvent, Failure> {
    let StatusUpdate { task_id, context_id, status: task_status, is_final: _, metadata } = update;
    Ok(pb::TaskStatusUpdateEvent {
        task_id,
        context_id,
        status: Some(status(task_status)?),
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
        message: status_message.map(message).transpose()?,
        timestamp: Some(to_timestamp(timestamp)),
    })
}

const fn state(state: TaskState) -> pb::TaskState {
    match state {
        TaskState::Submitted => pb::TaskState::Submitted,
        TaskState::Working => pb::TaskState::Working,
        TaskState::InputRequired => pb::TaskState::InputRequired,
        TaskState::Completed => pb::TaskState::Completed,
        TaskState::Canceled => pb::TaskState::Canceled,
        TaskState::Failed => pb::TaskState::Failed,
        TaskState::Rejected => pb::TaskState::Rejected,
        TaskState::AuthRequired => pb::TaskState::AuthRequired,
    }
}

/// Writes a message.
///
/// # Errors
/// Fails if a value does not fit the wire format.
pub fn message(message: Message) -> Result<pb::Message, Failure> {
    let Message {
        message_id,
        context_id,
        task_id,
        role,
        parts,
        metadata,
        extensions,
        reference_task_ids,
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
        parts: parts.into_iter().map(part).collect::<Result<_, _>>()?,
        metadata: write_metadata(metadata),
        extensions,
        reference_task_ids,
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

fn part(part: A2aPart) -> Result<pb::Part, Failure> {
    let A2aPart { content, filename, media_type, metadata } = part;
    let content = match content {
        PartContent::Text(text) => pb::part::Content::Text(text),
        PartContent::Raw(raw) => pb::part::Content::Raw(decode_base64(&raw)?),
        PartContent::Url(url) => pb::part::Content::Url(url),
        PartContent::Data(data) => pb::part::Content::Data(to_proto_value(data)),
    };
    Ok(pb::Part {
        content: Some(content),
        metadata: write_metadata(metadata),
        filename: filename.unwrap_or_default(),
        media_type: media_type.unwrap_or_default(),
    })
}

/// Writes a page of tasks.
///
/// # Errors
/// Fails if a value does not fit the wire format.
pub fn page(page: ListPage) -> Result<pb::ListTasksResponse, Failure> {
    let ListPage { tasks, next_page_token, page_size, total_size } = page;
    Ok(pb::ListTasksResponse {
        tasks: tasks.into_iter().map(task).collect::<Result<_, _>>()?,
        next_page_token,
        page_size: saturating_i32(page_size),
        total_size: saturating_i32(total_size),
    })
}

/// Writes a push configuration.
pub fn push_config(config: PushConfig) -> pb::TaskPushNotificationConfig {
    let PushConfig { id, task_id, url, token, authentication } = config;
    let authentication = authentication.map(|auth| pb::AuthenticationInfo {
        scheme: auth.scheme,
        credentials: auth.credentials.unwrap_or_default(),
    });
    let task_id = task_id.unwrap_or_default();
    pb::TaskPushNotificationConfig {
        tenant: String::new(),
        // Clients address the configuration by this id, so it must not be empty.
        id: id.unwrap_or_else(|| task_id.clone()),
        task_id,
        url,
        token: token.unwrap_or_default(),
        authentication,
    }
}

/// Writes a card.
pub fn card(card: Card) -> pb::AgentCard {
    let (security_schemes, security_requirements) = security(card.security);
    let extensions =
        card.capabilities.extensions.into_iter().map(|(uri, description, required)| {
            pb::AgentExtension { uri, description, required, params: None }
        });
    let details = card.details;
    let (interfaces_1_0, interfaces_0_3): (Vec<_>, Vec<_>) =
        // Interfaces of 1.0 first: a client takes the first one that it supports.
        card.interfaces.into_iter().partition(|interface| interface.version == ProtocolVersion::V1_0);
    pb::AgentCard {
        name: card.name,
        description: card.description,
        supported_interfaces: interfaces_1_0.iter().chain(&interfaces_0_3).map(interface).collect(),
        provider: details.provider.map(provider),
        version: card.version,
        documentation_url: details.documentation_url,
        capabilities: Some(pb::AgentCapabilities {
            streaming: Some(card.capabilities.streaming),
            push_notifications: Some(card.capabilities.push_notifications),
            extensions: extensions.collect(),
            extended_agent_card: Some(card.capabilities.has_extended_card),
        }),
        security_schemes,
        security_requirements,
        default_input_modes: card.input_modes,
        default_output_modes: card.output_modes,
        skills: card.skills.into_iter().map(skill).collect(),
        signatures: Vec::new(),
        icon_url: details.icon_url,
    }
}

fn interface(interface: &Interface) -> pb::AgentInterface {
    let protocol_binding = match interface.binding {
        Binding::JsonRpc => "JSONRPC",
        Binding::HttpJson => "HTTP+JSON",
        Binding::Grpc => "GRPC",
    };
    pb::AgentInterface {
        url: interface.v1_interface_url().to_owned(),
        protocol_binding: protocol_binding.to_owned(),
        tenant: interface.tenant.clone().unwrap_or_default(),
        protocol_version: interface.version.as_str().to_owned(),
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

fn security(
    security: CardSecurity,
) -> (HashMap<String, pb::SecurityScheme>, Vec<pb::SecurityRequirement>) {
    use pb::security_scheme::Scheme;
    let (name, scheme) = match security {
        CardSecurity::NoAuthentication => return (HashMap::new(), Vec::new()),
        CardSecurity::Bearer => {
            let scheme = pb::HttpAuthSecurityScheme {
                scheme: "Bearer".to_owned(),
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
    (HashMap::from([(name.to_owned(), scheme)]), vec![pb::SecurityRequirement { schemes }])
}
