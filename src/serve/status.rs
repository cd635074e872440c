//! The living tree, for those who may look.

use algonius_actors::model::code::Code;
use algonius_actors::model::exposure::{Binding, Version};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::principal::{Caller, Right};
use algonius_actors::model::status::AgentStatus;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde_json::Value;

use super::answer::{Problem, json as json_answer, ok, text, written};
use super::auth::Who;
use super::segment::Segment;
use super::{App, card, jsonrpc};
use crate::observe::Scene;
use crate::wire::a2a::v1::Interface;
use crate::wire::api::service::{Liveness, Readiness, Ready};
use crate::wire::api::{A2aAgent, A2aStatus, A2aWay, MachineStatus, ServiceStatus};

/// What the numbers are written in.
pub(super) const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Says that the service answers. Open to everybody, and tells nothing else.
pub async fn health() -> Response {
    told(StatusCode::OK, &Liveness { status: "ok".to_owned() })
}

/// Says whether the service can take work now, and if not why not, in a word each. Open to everybody,
/// and tells nothing else.
pub async fn ready(State(app): State<App>) -> Response {
    let reasons = app.gateway.unready().await;
    let (code, status) = match reasons.as_slice() {
        [] => (StatusCode::OK, Ready::Ready),
        _ => (StatusCode::SERVICE_UNAVAILABLE, Ready::Unready),
    };
    let reasons = reasons.into_iter().map(str::to_owned).collect();
    told(code, &Readiness { status, reasons })
}

/// What everybody is told.
fn told(status: StatusCode, shape: &impl serde::Serialize) -> Response {
    match to_json(shape) {
        Ok(body) => json_answer("application/json", status, &body),
        Err(failure) => Problem(failure).into_response(),
    }
}

/// The numbers, in the text that Prometheus reads. For tokens that are good for all agents.
///
/// # Errors
/// `path-unknown` where they are switched off, `forbidden`.
pub async fn metrics(State(app): State<App>, who: Who) -> Result<Response, Problem> {
    if !app.metrics {
        return Err(Failure::new(Code::PathUnknown, "there is nothing here").into());
    }
    let caller = who.may(Right::Read, None)?;
    if caller.scope.agents.is_some() {
        return Err(Failure::new(Code::Forbidden, "the token is not good for all agents").into());
    }
    let scene = Scene { tree: app.gateway.status().await, ledger_bytes: (app.ledger_bytes)() };
    let headers = [(CONTENT_TYPE, OPENMETRICS), (CACHE_CONTROL, "no-store")];
    Ok((headers, app.observatory.numbers(&scene)).into_response())
}

/// The whole tree; agents outside the token's scope are left out.
///
/// # Errors
/// `forbidden`.
pub async fn tree(State(app): State<App>, who: Who) -> Result<Response, Problem> {
    let caller = who.may(Right::Read, None)?;
    if caller.scope.agents.is_some() {
        return Ok(ok(&seen(&app, &caller).await));
    }
    let look = async { Bytes::from(text(&seen(&app, &caller).await)) };
    let text = app.looks.share(look).await;
    Ok(written("application/json", StatusCode::OK, text))
}

/// What a caller may see of the tree now.
async fn seen(app: &App, caller: &Caller) -> ServiceStatus {
    let mut tree = app.gateway.status().await;
    let is_seen = |id: &AgentId| caller.scope.allows(Right::Read, Some(id));
    tree.agents.retain(|agent| is_seen(&agent.id));
    if let Some(scheduler) = &mut tree.scheduler {
        scheduler.due.retain(|due| is_seen(&due.agent));
    }
    tree.agents.iter_mut().for_each(|agent| agent.program = (app.programs)(&agent.id));
    let machine = MachineStatus { rungs: app.rungs.clone(), wardens: (app.wardens)() };
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let mut configuration = app.admin.configuration();
    configuration.switched.retain(|id| AgentId::new(id.as_str()).is_ok_and(|id| is_seen(&id)));
    let ledger = app.stocktaking.stock(&app.gateway).await.ok(); // A ledger that cannot be read hides nothing else.
    ServiceStatus { version, configuration, machine, ledger, tree }
}

/// One agent of the tree.
///
/// # Errors
/// `agent-unknown` or `forbidden`.
pub async fn agent(
    State(app): State<App>,
    who: Who,
    Segment(agent): Segment,
) -> Result<Response, Problem> {
    let id = jsonrpc::known(&app, &agent)?;
    who.may(Right::Read, Some(&id))?;
    Ok(ok(&of(&app, &id).await?))
}

/// What the tree says of one agent.
///
/// # Errors
/// `agent-unknown`.
pub async fn of(app: &App, id: &AgentId) -> Result<Value, Failure> {
    let tree = app.gateway.status().await;
    let status = tree.agents.into_iter().find(|agent| agent.id == *id);
    let none = || Failure::new(Code::AgentUnknown, "there is no such agent");
    let status = status.ok_or_else(none)?;
    to_json(&AgentStatus { program: (app.programs)(id), ..status })
}

/// What is spoken, by which agent, and how each is.
///
/// # Errors
/// `forbidden`.
pub async fn a2a(State(app): State<App>, who: Who) -> Result<Response, Problem> {
    let caller = who.may(Right::Read, None)?;
    let tree = app.gateway.status().await;
    let seen = tree.agents.into_iter().filter_map(|agent| {
        let spec = app.agents.get(&agent.id)?;
        caller.scope.allows(Right::Read, Some(&agent.id)).then(|| A2aAgent {
            interfaces: card::ways(&app, spec).into_iter().map(way).collect(),
            id: agent.id.to_string(),
            enabled: agent.enabled,
            health: agent.health,
            running: agent.running.len(),
            queued: agent.queued.len(),
        })
    });
    let agents = seen.collect();
    let served = |word: fn(&(Binding, Version)) -> &'static str| {
        let mut words: Vec<_> = card::SERVED.ways.iter().map(word).collect();
        words.sort_unstable();
        words.dedup();
        words.into_iter().map(str::to_owned).collect()
    };
    let versions = served(|(_, version)| version.as_str());
    let bindings = served(|(binding, _)| binding.as_str());
    Ok(ok(&to_json(&A2aStatus { versions, bindings, agents })?))
}

fn way(way: Interface) -> A2aWay {
    let Interface { url, binding, version, tenant } = way;
    let (binding, version) = (binding.as_str().to_owned(), version.as_str().to_owned());
    A2aWay { url, binding, version, tenant }
}

/// A shape as JSON.
///
/// # Errors
/// `internal`, for a shape that JSON cannot hold.
pub fn to_json(shape: &impl serde::Serialize) -> Result<Value, Failure> {
    serde_json::to_value(shape).map_err(|error| {
        tracing::error!(%error, "answer cannot be written");
        Failure::new(Code::Internal, "the answer could not be written")
    })
}
