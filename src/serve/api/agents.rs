//! The directory of agents, and each of them.

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::agent::{Access, AgentSpec};
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::principal::Right;
use algonius_actors::model::status::AgentStatus;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use super::query::wrong;
use crate::serve::answer::{Problem, ok};
use crate::serve::auth::Who;
use crate::serve::segment::Segment;
use crate::serve::status::to_json;
use crate::serve::{App, card, jsonrpc};
use crate::wire::api::agent::{AgentDetail, AgentLimits, Idleness, PoolEntry};
use crate::wire::api::{AgentEntry, AgentList};

/// The longest that anybody waits for an agent, in seconds.
const LONGEST_WAIT: u64 = 3600;

/// The directory: the agents that the caller may use.
///
/// # Errors
/// `forbidden`.
pub async fn list(State(app): State<App>, who: Who) -> Result<Response, Problem> {
    let caller = who.may(Right::Read, None)?;
    let seen = app.agents.values().filter(|spec| caller.scope.allows(Right::Read, Some(&spec.id)));
    let agents = seen.map(|spec| entry(&app, spec));
    Ok(ok(&to_json(&AgentList { agents: agents.collect() })?))
}

fn entry(app: &App, spec: &AgentSpec) -> AgentEntry {
    let access = match spec.access {
        Access::ReadOnly => "read-only",
        Access::ReadWrite => "read-write",
    };
    AgentEntry {
        id: spec.id.to_string(),
        name: spec.name.clone(),
        description: spec.description.clone(),
        version: spec.version.clone(),
        enabled: spec.enabled,
        switched: app.admin.configuration().switched.contains(&spec.id.to_string()),
        access: access.to_owned(),
        enforcement: spec.enforcement,
        isolation: spec.isolation,
        url: card::url(app, spec),
        card: format!("{}/agents/{}/.well-known/agent-card.json", app.public_url, spec.id),
    }
}

/// One agent: what it is configured to be, without secrets, and how it is.
///
/// # Errors
/// `agent-unknown` or `forbidden`.
pub async fn show(
    State(app): State<App>,
    who: Who,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let (spec, status) = of(&app, who, &id, Duration::ZERO).await?;
    let detail = AgentDetail {
        entry: entry(&app, &spec),
        skills: spec.skills.clone(),
        limits: AgentLimits::from(&*spec),
        pool: PoolEntry::from(&status),
        queue_length: status.queued.len(),
        status: AgentStatus { program: (app.programs)(&spec.id), ..status },
    };
    Ok(ok(&to_json(&detail)?))
}

/// For how long to wait.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitQuery {
    /// At most so many seconds; 60 where nothing is said.
    #[schemars(range(max = LONGEST_WAIT))]
    seconds: Option<u64>,
}

/// Waits until an agent has nothing that runs or waits, for a minute when the caller does not say.
///
/// # Errors
/// `agent-unknown`, `forbidden` or `invalid-params`.
pub async fn wait(
    State(app): State<App>,
    who: Who,
    Segment(id): Segment,
    query: Result<Query<WaitQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let seconds = query.map(|Query(query)| query.seconds.unwrap_or(60)).ok();
    let seconds = seconds.filter(|seconds| *seconds <= LONGEST_WAIT);
    let seconds = seconds.ok_or_else(|| wrong("the query takes `seconds`, 0 to 3600"))?;
    let (_, status) = of(&app, who, &id, Duration::from_secs(seconds)).await?;
    Ok(ok(&to_json(&Idleness::from(&status))?))
}

/// An agent, and how it is once it is idle or the time is over.
async fn of(
    app: &App,
    who: Who,
    id: &str,
    most: Duration,
) -> Result<(Arc<AgentSpec>, AgentStatus), Failure> {
    let id = jsonrpc::known(app, id)?;
    who.may(Right::Read, Some(&id))?;
    let none = || Failure::new(Code::AgentUnknown, "there is no such agent");
    let spec = app.agents.get(&id).cloned().ok_or_else(none)?;
    let status = app.gateway.idle(&id, most).await.ok_or_else(none)?;
    Ok((spec, status))
}
