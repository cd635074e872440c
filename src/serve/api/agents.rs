//! Directory of agents and details of one agent.

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::access::principal::Right;
use algonius_actors::model::agent::{Access, AgentSpec};
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::observation::status::AgentStatus;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::http::header::HOST;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use super::invalid_params;
use crate::serve::AppState;
use crate::serve::a2a::card;
use crate::serve::a2a::card::public_address::PublicAddress;
use crate::serve::auth::caller::AuthenticatedCaller;
use crate::serve::http::path_param::PathParam;
use crate::serve::http::response::{ProblemBody, ok_response, to_json};
use crate::wire::api::agent::{AgentActivity, AgentDetail, AgentLimits, PoolEntry};
use crate::wire::api::{AgentEntry, AgentList};

/// Maximum time for which a request waits for an agent, in seconds.
const MAX_WAIT_SECONDS: u64 = 3600;

/// Lists the agents that the caller may use.
///
/// # Errors
/// `forbidden`.
pub async fn list(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    headers: HeaderMap,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Read, None)?;
    let address = app.public_addresses.for_host(headers.get(HOST));
    let visible_specs =
        app.agents.all().filter(|spec| caller.scope.allows(Right::Read, Some(&spec.id)));
    let agents = visible_specs.map(|spec| agent_entry(&app, spec, &address));
    Ok(ok_response(&to_json(&AgentList { agents: agents.collect() })?))
}

fn agent_entry(app: &AppState, spec: &AgentSpec, address: &PublicAddress) -> AgentEntry {
    let access = match spec.access {
        Access::ReadOnly => "read-only",
        Access::ReadWrite => "read-write",
    };
    AgentEntry {
        id: spec.id.to_string(),
        kind: spec.kind(),
        name: spec.profile.name.clone(),
        description: spec.profile.description.clone(),
        version: spec.profile.version.clone(),
        enabled: spec.enabled,
        switched: app.admin.configuration_status().switched.contains(&spec.id.to_string()),
        unavailable: spec.unavailable_failure().map(|failure| failure.message),
        access: access.to_owned(),
        confinement: spec.confinement().cloned(),
        url: card::jsonrpc_url(address, spec),
        card: format!("{}/agents/{}/.well-known/agent-card.json", address.url, spec.id),
    }
}

/// Returns one agent: its configuration without secrets, and its state.
///
/// # Errors
/// `agent-unknown` or `forbidden`.
pub async fn show(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(id): PathParam,
    headers: HeaderMap,
) -> Result<Response, ProblemBody> {
    let (spec, status) = read_agent_once_idle(&app, caller, &id, Duration::ZERO).await?;
    let detail = AgentDetail {
        entry: agent_entry(&app, &spec, &app.public_addresses.for_host(headers.get(HOST))),
        skills: spec.profile.skills.clone(),
        limits: AgentLimits::from(&*spec),
        pool: PoolEntry::from(&status),
        queue_length: status.work.queued.len(),
        status: AgentStatus { program: app.agents.program_status(&spec.id), ..status },
    };
    Ok(ok_response(&to_json(&detail)?))
}

/// Maximum waiting time.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitQuery {
    /// Maximum waiting time in seconds; by default 60.
    #[schemars(range(max = MAX_WAIT_SECONDS))]
    seconds: Option<u64>,
}

/// Waits until an agent neither runs nor queues executions, by default for up to one minute.
///
/// # Errors
/// `agent-unknown`, `forbidden` or `invalid-params`.
pub async fn wait(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(id): PathParam,
    query: Result<Query<WaitQuery>, QueryRejection>,
) -> Result<Response, ProblemBody> {
    let seconds = query.map(|Query(query)| query.seconds.unwrap_or(60)).ok();
    let seconds = seconds.filter(|seconds| *seconds <= MAX_WAIT_SECONDS);
    let seconds = seconds.ok_or_else(|| invalid_params("the query takes `seconds`, 0 to 3600"))?;
    let (_, status) = read_agent_once_idle(&app, caller, &id, Duration::from_secs(seconds)).await?;
    Ok(ok_response(&to_json(&AgentActivity::from(&status))?))
}

/// Returns an agent and its state once it is idle or the time has elapsed.
async fn read_agent_once_idle(
    app: &AppState,
    caller: AuthenticatedCaller,
    id: &str,
    max_wait: Duration,
) -> Result<(Arc<AgentSpec>, AgentStatus), Failure> {
    let id = app.agents.resolve_id(id)?;
    caller.require_right(Right::Read, Some(&id))?;
    let no_such_agent = || Failure::new(Code::AgentUnknown, "there is no such agent");
    let spec = app.agents.get(&id).cloned().ok_or_else(no_such_agent)?;
    let status = app.api.tree.wait_until_idle(&id, max_wait).await.ok_or_else(no_such_agent)?;
    Ok((spec, status))
}
