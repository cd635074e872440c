//! Core shapes, as callers of 1.0 hear them.

use std::collections::HashMap;

use algonius_actors::model::failure::Failure;

use crate::serve::grpc::proto::lf_a2a_v1 as pb;
use crate::serve::grpc::value::{bytes, capped, to_timestamp, to_value, written};
use crate::wire::a2a::v1::{
    Artifact, ArtifactUpdate, Binding, Card, CardSecurity, CardSkill, Content, Interface, ListPage,
    Message, Part, PushConfig, Reply, Role, StatusUpdate, StreamEvent, Task, TaskState, TaskStatus,
    Version,
};

pub(super) fn reply(reply: Reply) -> Result<pb::SendMessageResponse, Failure> {
    use pb::send_message_response::Payload;
    let payload = match reply {
        Reply::Task(answer) => Payload::Task(task(answer)?),
        Reply::Message(answer) => Payload::Message(message(answer)?),
    };
    Ok(pb::SendMessageResponse { payload: Some(payload) })
}

pub(super) fn event(event: StreamEvent) -> Result<pb::StreamResponse, Failure> {
    use pb::stream_response::Payload;
    let payload = match event {
        StreamEvent::Task(whole) => Payload::Task(task(whole)?),
        StreamEvent::Message(answer) => Payload::Message(message(answer)?),
        StreamEvent::Status(update) => Payload::StatusUpdate(status_update(update)?),
        StreamEvent::Artifact(update) => Payload::ArtifactUpdate(artifact_update(update)?),
    };
    Ok(pb::StreamResponse { payload: Some(payload) })
}

/// The end of a stream is told by its end.
fn status_update(update: StatusUpdate) -> Result<pb::TaskStatusUpdateEvent, Failure> {
    let StatusUpdate { task_id, context_id, status: now, is_final: _, metadata } = update;
    Ok(pb::TaskStatusUpdateEvent {
        task_id,
        context_id,
        status: Some(status(now)?),
        metadata: written(metadata),
    })
}

fn artifact_update(update: ArtifactUpdate) -> Result<pb::TaskArtifactUpdateEvent, Failure> {
    let ArtifactUpdate { task_id, context_id, artifact: made, append, last_chunk, metadata } =
        update;
    Ok(pb::TaskArtifactUpdateEvent {
        task_id,
        context_id,
        artifact: Some(artifact(made)?),
        append,
        last_chunk,
        metadata: written(metadata),
    })
}

pub(super) fn task(task: Task) -> Result<pb::Task, Failure> {
    let Task { id, context_id, status: now, artifacts, history, metadata } = task;
    Ok(pb::Task {
        id,
        context_id,
        status: Some(status(now)?),
        artifacts: artifacts.into_iter().map(artifact).collect::<Result<_, _>>()?,
        history: history.into_iter().map(message).collect::<Result<_, _>>()?,
        metadata: written(metadata),
    })
}

fn status(status: TaskStatus) -> Result<pb::TaskStatus, Failure> {
    let TaskStatus { state: now, message: word, timestamp } = status;
    Ok(pb::TaskStatus {
        state: state(now).into(),
        message: word.map(message).transpose()?,
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

pub(super) fn message(message: Message) -> Result<pb::Message, Failure> {
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
        metadata: written(metadata),
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
        metadata: written(metadata),
        extensions,
    })
}

fn part(part: Part) -> Result<pb::Part, Failure> {
    let Part { content, filename, media_type, metadata } = part;
    let content = match content {
        Content::Text(text) => pb::part::Content::Text(text),
        Content::Raw(raw) => pb::part::Content::Raw(bytes(&raw)?),
        Content::Url(url) => pb::part::Content::Url(url),
        Content::Data(data) => pb::part::Content::Data(to_value(data)),
    };
    Ok(pb::Part {
        content: Some(content),
        metadata: written(metadata),
        filename: filename.unwrap_or_default(),
        media_type: media_type.unwrap_or_default(),
    })
}

pub(super) fn page(page: ListPage) -> Result<pb::ListTasksResponse, Failure> {
    let ListPage { tasks, next_page_token, page_size, total_size } = page;
    Ok(pb::ListTasksResponse {
        tasks: tasks.into_iter().map(task).collect::<Result<_, _>>()?,
        next_page_token,
        page_size: capped(page_size),
        total_size: capped(total_size),
    })
}

pub(super) fn registration(config: PushConfig) -> pb::TaskPushNotificationConfig {
    let PushConfig { id, task_id, url, token, authentication } = config;
    let authentication = authentication.map(|given| pb::AuthenticationInfo {
        scheme: given.scheme,
        credentials: given.credentials.unwrap_or_default(),
    });
    let task_id = task_id.unwrap_or_default();
    pb::TaskPushNotificationConfig {
        tenant: String::new(),
        id: id.unwrap_or_else(|| task_id.clone()),
        task_id,
        url,
        token: token.unwrap_or_default(),
        authentication,
    }
}

pub(super) fn card(card: Card) -> pb::AgentCard {
    let (security_schemes, security_requirements) = security(card.security);
    let extensions = card.extensions.into_iter().map(|(uri, description, required)| {
        pb::AgentExtension { uri, description, required, params: None }
    });
    pb::AgentCard {
        name: card.name,
        description: card.description,
        supported_interfaces: card.interfaces.into_iter().map(interface).collect(),
        provider: None,
        version: card.version,
        documentation_url: None,
        capabilities: Some(pb::AgentCapabilities {
            streaming: Some(card.streaming),
            push_notifications: Some(card.push),
            extensions: extensions.collect(),
            extended_agent_card: Some(card.extended),
        }),
        security_schemes,
        security_requirements,
        default_input_modes: card.input_modes,
        default_output_modes: card.output_modes,
        skills: card.skills.into_iter().map(skill).collect(),
        signatures: Vec::new(),
        icon_url: None,
    }
}

fn interface(way: Interface) -> pb::AgentInterface {
    let Interface { url, binding, version, tenant } = way;
    let protocol_binding = match binding {
        Binding::JsonRpc => "JSONRPC",
        Binding::HttpJson => "HTTP+JSON",
        Binding::Grpc => "GRPC",
    };
    let protocol_version = match version {
        Version::V0_3 => "0.3",
        Version::V1_0 => "1.0",
    };
    pb::AgentInterface {
        url,
        protocol_binding: protocol_binding.to_owned(),
        tenant: tenant.unwrap_or_default(),
        protocol_version: protocol_version.to_owned(),
    }
}

fn skill(skill: CardSkill) -> pb::AgentSkill {
    let CardSkill { id, name, description, tags } = skill;
    pb::AgentSkill { id, name, description, tags, ..pb::AgentSkill::default() }
}

fn security(
    security: CardSecurity,
) -> (HashMap<String, pb::SecurityScheme>, Vec<pb::SecurityRequirement>) {
    use pb::security_scheme::Scheme;
    let (name, scheme) = match security {
        CardSecurity::Nothing => return (HashMap::new(), Vec::new()),
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
