//! Push configurations of tasks, in core shapes, over the push desk.

use algonius_actors::door::Gateway;
use algonius_actors::model::code::Code;
use algonius_actors::model::event::Fact;
use algonius_actors::model::execution::State;
use algonius_actors::model::exposure::Version;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{AgentId, ExecutionId};
use algonius_actors::model::principal::Caller;
use algonius_actors::model::push::{PushCredentials, PushTarget, Secret};
use algonius_actors::model::record::Record;
use uuid::Uuid;

use super::task::Telling;
use super::{App, a2a, follow};
use crate::push::Desk;
use crate::wire::a2a::v0_3;
use crate::wire::a2a::v1::{History, PushAuthentication, PushConfig, json};

/// The longest id of a configuration, in bytes.
const LONGEST_ID: usize = 256;

/// Registers a configuration for a task; one of the same id is replaced. The receiver hears what
/// happens from now on, and of a task that has ended, how.
///
/// # Errors
/// When the task is not there for the caller at this agent, when the address is not one to tell,
/// or when nobody is told at all.
pub async fn push_set(
    app: &App,
    caller: &Caller,
    agent: &AgentId,
    version: Version,
    config: PushConfig,
) -> Result<PushConfig, Failure> {
    let desk = desk(app)?;
    let id = config.task_id.as_deref().unwrap_or_default();
    let record = a2a::find(app, caller, agent, id).await?;
    let known = known(app, &record).await?;
    let target = target(desk, caller, record.id, version, config)?;
    desk.set(target.clone(), known).await?;
    Ok(shown(target))
}

/// One configuration of a task: the one of an id, or the task's only or oldest.
///
/// # Errors
/// When the task or the configuration is not there for the caller at this agent.
pub async fn push_get(
    app: &App,
    caller: &Caller,
    agent: &AgentId,
    task_id: &str,
    config_id: Option<&str>,
) -> Result<PushConfig, Failure> {
    let desk = desk(app)?;
    let record = a2a::find(app, caller, agent, task_id).await?;
    let id =
        config_id.filter(|id| !id.is_empty()).map_or_else(|| record.id.to_string(), str::to_owned);
    let mut found = desk.get(record.id, &id).await?;
    // Clients that know no id ask for the default one.
    if found.is_none() && config_id.is_none_or(|id| id.is_empty() || id == "default") {
        found = desk.list(record.id).await?.into_iter().next();
    }
    let missing = || Failure::new(Code::ExecutionUnknown, "push configuration not found");
    found.map(shown).ok_or_else(missing)
}

/// All configurations of a task, the oldest first.
///
/// # Errors
/// When the task is not there for the caller at this agent.
pub async fn push_list(
    app: &App,
    caller: &Caller,
    agent: &AgentId,
    task_id: &str,
) -> Result<Vec<PushConfig>, Failure> {
    let desk = desk(app)?;
    let record = a2a::find(app, caller, agent, task_id).await?;
    Ok(desk.list(record.id).await?.into_iter().map(shown).collect())
}

/// Removes a configuration of a task. One that is not there is as good as removed.
///
/// # Errors
/// When the task is not there for the caller at this agent.
pub async fn push_delete(
    app: &App,
    caller: &Caller,
    agent: &AgentId,
    task_id: &str,
    config_id: &str,
) -> Result<(), Failure> {
    let desk = desk(app)?;
    let record = a2a::find(app, caller, agent, task_id).await?;
    desk.delete(record.id, config_id).await?;
    Ok(())
}

/// The body of a notice about an event of an execution, in the words of a version.
///
/// # Errors
/// When the ledger could not be read, or when the version cannot be written.
pub async fn notice(
    gateway: &Gateway,
    record: &Record,
    version: Version,
    event: u64,
) -> Result<Option<Vec<u8>>, Failure> {
    match version {
        Version::V0_3 => {
            let task = Telling::read(gateway, record).await?.task(History::All).await?;
            Ok(Some(v0_3::write::task(task).to_string().into_bytes()))
        }
        Version::V1_0 => {
            let told = follow::one(gateway, record, event).await?;
            Ok(told.map(|told| json::write::event(told).to_string().into_bytes()))
        }
    }
}

/// Checks the configuration of a message before the message is accepted.
///
/// # Errors
/// When it could not be registered.
pub(super) fn check(
    app: &App,
    caller: &Caller,
    version: Version,
    config: &PushConfig,
) -> Result<(), Failure> {
    let desk = desk(app)?;
    let nobody = ExecutionId(Uuid::nil());
    desk.check(&target(desk, caller, nobody, version, config.clone())?)
}

/// The target of the configuration of a message that was accepted.
///
/// A message that is sent again has the same task, so without an id of its own the configuration
/// has the task's in each version, and is one all the same.
///
/// # Errors
/// When it is not a sound one.
pub(super) fn beside(
    app: &App,
    caller: &Caller,
    id: ExecutionId,
    version: Version,
    config: PushConfig,
) -> Result<PushTarget, Failure> {
    let named = config.id.filter(|id| !id.is_empty());
    let config = PushConfig { id: named.or_else(|| Some(id.to_string())), ..config };
    target(desk(app)?, caller, id, version, config)
}

/// Registers a target that hears what comes after the event `known`.
///
/// # Errors
/// When it was not recorded.
pub(super) async fn register(app: &App, target: PushTarget, known: u64) -> Result<(), Failure> {
    desk(app)?.set(target, known).await
}

fn desk(app: &App) -> Result<&Desk, Failure> {
    let none = || Failure::new(Code::PushUnsupported, "this service sends no push notifications");
    app.push.as_ref().ok_or_else(none)
}

/// The last event that need not be told: the latest, or the one before the end.
async fn known(app: &App, record: &Record) -> Result<u64, Failure> {
    if record.outcome.is_none() {
        return Ok(record.last_event);
    }
    let events = app.gateway.events(record, 0).await?;
    let end = events
        .iter()
        .find(|event| matches!(&event.fact, Fact::Moved(moved) if moved.to == State::Cleanup));
    Ok(end.map_or(record.last_event, |event| event.number.saturating_sub(1)))
}

fn target(
    desk: &Desk,
    caller: &Caller,
    execution: ExecutionId,
    version: Version,
    config: PushConfig,
) -> Result<PushTarget, Failure> {
    let PushConfig { id, task_id: _, url, token, authentication } = config;
    let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| match version {
        Version::V0_3 => execution.to_string(),
        Version::V1_0 => Uuid::new_v4().to_string(),
    });
    if id.len() > LONGEST_ID || id.chars().any(char::is_control) {
        let text = format!("an id has at most {LONGEST_ID} bytes and no control characters");
        return Err(Failure::new(Code::InvalidParams, text));
    }
    Ok(PushTarget {
        id,
        execution,
        owner: caller.principal,
        version,
        registration: Uuid::new_v4(),
        url: Secret(url),
        token: token.filter(|token| !token.is_empty()).map(Secret),
        authentication: authentication.map(|given| PushCredentials {
            scheme: given.scheme,
            credentials: given.credentials.filter(|text| !text.is_empty()).map(Secret),
        }),
        created_at: desk.now(),
    })
}

/// What the owner is shown: neither the token nor the credentials, which are sent to the receiver
/// alone.
fn shown(target: PushTarget) -> PushConfig {
    PushConfig {
        id: Some(target.id),
        task_id: Some(target.execution.to_string()),
        url: target.url.0,
        token: None,
        authentication: target
            .authentication
            .map(|given| PushAuthentication { scheme: given.scheme, credentials: None }),
    }
}
