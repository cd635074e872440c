//! Push configurations of tasks, in core shapes, over the push registry.

use algonius_a2a::v0_3;
use algonius_a2a::v1::{HistoryLength, PushAuthentication, PushConfig};
use algonius_a2a::v1_json as json;
use algonius_actors::api::Api;
use algonius_actors::model::access::endpoint_config::ProtocolVersion;
use algonius_actors::model::access::principal::Caller;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::ExecutionState;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::execution::record::ExecutionRecord;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{AgentId, ExecutionId};
use algonius_actors::model::push::{PushCredentials, PushTarget, Secret};
use uuid::Uuid;

use super::lookup;
use crate::push::PushRegistry;
use crate::serve::AppState;
use crate::serve::a2a::task::{TaskView, updates};

/// Maximum length of the id of a configuration, in bytes.
const MAX_CONFIG_ID_BYTES: usize = 256;

/// Registers a configuration for a task, or replaces one with the same id. The receiver gets all later events and,
/// for a task that has ended, its end.
///
/// # Errors
/// Fails if the caller has no such task at this agent, if the address is not allowed, or if push notifications are
/// disabled.
pub async fn push_set(
    app: &AppState,
    caller: &Caller,
    agent: &AgentId,
    version: ProtocolVersion,
    config: PushConfig,
) -> Result<PushConfig, Failure> {
    let registry = registry(app)?;
    let id = config.task_id.as_deref().unwrap_or_default();
    let record = lookup::find_by_text_id(app, caller, agent, id).await?;
    // Read before the registration, so that an event in between is delivered.
    let last_omitted_event = last_omitted_event(app, &record).await?;
    let target = new_target(registry, caller, record.id, version, config)?;
    registry.register(target.clone(), last_omitted_event).await?;
    Ok(config_without_secrets(target))
}

/// Returns one configuration of a task: the one with the given id, or the task's only or oldest one.
///
/// # Errors
/// Fails if the caller has no such task at this agent, or if the configuration does not exist.
pub async fn push_get(
    app: &AppState,
    caller: &Caller,
    agent: &AgentId,
    task_id: &str,
    config_id: Option<&str>,
) -> Result<PushConfig, Failure> {
    let registry = registry(app)?;
    let record = lookup::find_by_text_id(app, caller, agent, task_id).await?;
    let id =
        config_id.filter(|id| !id.is_empty()).map_or_else(|| record.id.to_string(), str::to_owned);
    let mut target = registry.get(record.id, &id).await?;
    // Clients that know no id request the default configuration.
    if target.is_none() && config_id.is_none_or(|id| id.is_empty() || id == "default") {
        target = registry.list(record.id).await?.into_iter().next();
    }
    let missing = || Failure::new(Code::ExecutionUnknown, "push configuration not found");
    target.map(config_without_secrets).ok_or_else(missing)
}

/// Returns all configurations of a task, oldest first.
///
/// # Errors
/// Fails if the caller has no such task at this agent.
pub async fn push_list(
    app: &AppState,
    caller: &Caller,
    agent: &AgentId,
    task_id: &str,
) -> Result<Vec<PushConfig>, Failure> {
    let registry = registry(app)?;
    let record = lookup::find_by_text_id(app, caller, agent, task_id).await?;
    Ok(registry.list(record.id).await?.into_iter().map(config_without_secrets).collect())
}

/// Removes a configuration of a task. A configuration that does not exist counts as removed.
///
/// # Errors
/// Fails if the caller has no such task at this agent.
pub async fn push_delete(
    app: &AppState,
    caller: &Caller,
    agent: &AgentId,
    task_id: &str,
    config_id: &str,
) -> Result<(), Failure> {
    let registry = registry(app)?;
    let record = lookup::find_by_text_id(app, caller, agent, task_id).await?;
    registry.delete(record.id, config_id).await?;
    Ok(())
}

/// Returns the body of a push notification about an event of an execution, in the form of a version; `None` if the
/// event causes none.
///
/// # Errors
/// Fails if the ledger cannot be read, if the body cannot be written in this version, or if the task does not show the
/// question of the event yet.
pub async fn notification_body(
    api: &Api,
    record: &ExecutionRecord,
    version: ProtocolVersion,
    event_number: u64,
) -> Result<Option<Vec<u8>>, Failure> {
    if !updates::is_event_still_visible(api, record, event_number).await? {
        return Ok(None);
    }
    match version {
        // 0.3 posts the whole task for each event, 1.0 the event alone.
        ProtocolVersion::V0_3 => {
            let task = TaskView::read(api, record).await?.task(HistoryLength::All).await?;
            Ok(Some(v0_3::write::task(task).to_string().into_bytes()))
        }
        ProtocolVersion::V1_0 => {
            let update = updates::notification_update(api, record, event_number).await?;
            Ok(update.map(|update| json::write::event(update).to_string().into_bytes()))
        }
    }
}

/// Checks the configuration of a message before the message is accepted.
///
/// # Errors
/// Fails if the configuration cannot be registered.
pub(super) fn check_config(
    app: &AppState,
    caller: &Caller,
    version: ProtocolVersion,
    config: &PushConfig,
) -> Result<(), Failure> {
    let registry = registry(app)?;
    // The execution does not exist yet, and no check depends on its id.
    let placeholder_id = ExecutionId(Uuid::nil());
    registry.validate_target(&new_target(
        registry,
        caller,
        placeholder_id,
        version,
        config.clone(),
    )?)
}

/// Returns the target for the configuration of an accepted message.
///
/// A repeated message has the same task. A configuration without an id therefore gets the id of the task in each
/// version, and stays a single configuration.
///
/// # Errors
/// Fails if the configuration is invalid.
pub(super) fn new_target_for_message(
    app: &AppState,
    caller: &Caller,
    id: ExecutionId,
    version: ProtocolVersion,
    config: PushConfig,
) -> Result<PushTarget, Failure> {
    let own_id = config.id.filter(|id| !id.is_empty());
    let config = PushConfig { id: own_id.or_else(|| Some(id.to_string())), ..config };
    new_target(registry(app)?, caller, id, version, config)
}

/// Registers a target that receives the events after the event `last_omitted_event`.
///
/// # Errors
/// Fails if the ledger cannot record the target.
pub(super) async fn register(
    app: &AppState,
    target: PushTarget,
    last_omitted_event: u64,
) -> Result<(), Failure> {
    registry(app)?.register(target, last_omitted_event).await
}

fn registry(app: &AppState) -> Result<&PushRegistry, Failure> {
    let push_disabled =
        || Failure::new(Code::PushUnsupported, "this service sends no push notifications");
    app.push_registry.as_ref().ok_or_else(push_disabled)
}

/// Returns the last event that the receiver does not get: the latest event, or the one before the end.
async fn last_omitted_event(app: &AppState, record: &ExecutionRecord) -> Result<u64, Failure> {
    if record.outcome.is_none() {
        return Ok(record.last_event_number);
    }
    let events = app.api.reader.events(record, 0).await?;
    let end = events.iter().find(
        // The move into the clean-up is committed together with the outcome. A failed attempt that is retried looks
        // the same until then (ADR 11).
        |event| matches!(&event.data, EventKind::StateChanged(change) if change.to == ExecutionState::Cleanup),
    );
    Ok(end.map_or(record.last_event_number, |event| event.number.saturating_sub(1)))
}

fn new_target(
    registry: &PushRegistry,
    caller: &Caller,
    execution: ExecutionId,
    version: ProtocolVersion,
    config: PushConfig,
) -> Result<PushTarget, Failure> {
    let PushConfig { id, task_id: _, url, token, authentication } = config;
    let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| match version {
        // Clients of 0.3 address the configuration of a task by the id of the task.
        ProtocolVersion::V0_3 => execution.to_string(),
        ProtocolVersion::V1_0 => Uuid::new_v4().to_string(),
    });
    if id.len() > MAX_CONFIG_ID_BYTES || id.chars().any(char::is_control) {
        let text =
            format!("an id has at most {MAX_CONFIG_ID_BYTES} bytes and no control characters");
        return Err(Failure::new(Code::InvalidParams, text));
    }
    Ok(PushTarget {
        id,
        execution,
        owner: caller.principal,
        version,
        registration_id: Uuid::new_v4(),
        url: Secret(url),
        token: token.filter(|token| !token.is_empty()).map(Secret),
        authentication: authentication.map(|authentication| PushCredentials {
            scheme: authentication.scheme,
            credentials: authentication.credentials.filter(|text| !text.is_empty()).map(Secret),
        }),
        created_at: registry.now(),
    })
}

/// Returns the configuration for its owner, without the token and the credentials, which only the receiver gets.
fn config_without_secrets(target: PushTarget) -> PushConfig {
    PushConfig {
        id: Some(target.id),
        task_id: Some(target.execution.to_string()),
        url: target.url.0,
        token: None,
        authentication: target.authentication.map(|authentication| PushAuthentication {
            scheme: authentication.scheme,
            credentials: None,
        }),
    }
}
