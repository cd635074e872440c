//! Health, readiness, metrics and status of the service.

use std::sync::Arc;

use algonius_a2a::v1::Interface;
use algonius_actors::model::access::endpoint_config::{Binding, ProtocolVersion};
use algonius_actors::model::access::principal::{Caller, Right};
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::host::host_capabilities::HostCapabilities;
use algonius_actors::model::id::AgentId;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

use super::single_flight::SingleFlight;
use super::storage_stats_cache::StorageStatsCache;
use crate::observe::{GaugeValues, Instruments};
use crate::serve::AppState;
use crate::serve::a2a::card;
use crate::serve::auth::caller::AuthenticatedCaller;
use crate::serve::http::path_param::PathParam;
use crate::serve::http::response::{
    ProblemBody, json_response, json_text_response, ok_response, to_json, to_json_text,
};
use crate::wire::admin::ConfigurationStatus;
use crate::wire::api::service::{HealthStatus, Readiness, ReadinessStatus};
use crate::wire::api::{
    A2aAgent, A2aInterface, A2aStatus, MachineStatus, OutputMemoryStatus, ServiceStatus,
};

/// Media type of the metrics.
pub(in crate::serve) const OPENMETRICS: &str =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Sources of the metrics and of the status.
pub struct Monitoring {
    /// Metrics of requests.
    pub instruments: Instruments,
    /// True if callers with the right to read can read the metrics.
    pub exposes_metrics: bool,
    /// Returns the size of the ledger's files, in bytes.
    pub ledger_bytes_fn: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// Cached storage statistics of the ledger.
    pub storage_stats: StorageStatsCache,
    /// Answer of `/status` that concurrent callers share, if they may see everything.
    pub shared_status: SingleFlight<Bytes>,
}

/// Facts about the machine and the processes on it.
pub struct MachineFacts {
    /// Capabilities of the machine.
    pub capabilities: HostCapabilities,
    /// Returns the process ids of the process holders and the usage of the memory for output.
    pub holder_status_fn: Arc<dyn Fn() -> (Vec<u32>, OutputMemoryStatus) + Send + Sync>,
}

/// Reports that the service responds. This endpoint needs no token and reveals nothing else.
pub async fn health() -> Response {
    public_response(StatusCode::OK, &HealthStatus { status: "ok".to_owned() })
}

/// Reports whether the service accepts work and, if not, the reasons. This endpoint needs no token and reveals
/// nothing else.
pub async fn readiness(State(app): State<AppState>) -> Response {
    let reasons = app.api.tree.unready_reasons().await;
    let (status_code, status) = match reasons.as_slice() {
        [] => (StatusCode::OK, ReadinessStatus::Ready),
        _ => (StatusCode::SERVICE_UNAVAILABLE, ReadinessStatus::Unready),
    };
    let reasons = reasons.into_iter().map(str::to_owned).collect();
    public_response(status_code, &Readiness { status, reasons })
}

/// Creates a response that needs no token.
fn public_response(status: StatusCode, value: &impl serde::Serialize) -> Response {
    match to_json(value) {
        Ok(body) => json_response("application/json", status, &body),
        Err(failure) => ProblemBody(failure).into_response(),
    }
}

/// Returns the metrics in the text format of Prometheus. Requires a token that is valid for all agents.
///
/// # Errors
/// `path-unknown` if metrics are disabled, `forbidden`.
pub async fn metrics(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
) -> Result<Response, ProblemBody> {
    if !app.monitoring.exposes_metrics {
        return Err(Failure::new(Code::PathUnknown, "there is nothing at this path").into());
    }
    let caller = caller.require_right(Right::Read, None)?;
    if caller.scope.agents.is_some() {
        return Err(Failure::new(Code::Forbidden, "the token is not valid for all agents").into());
    }
    let values = GaugeValues {
        tree: app.api.tree.status().await,
        ledger_bytes: (app.monitoring.ledger_bytes_fn)(),
    };
    let headers = [(CONTENT_TYPE, OPENMETRICS), (CACHE_CONTROL, "no-store")];
    Ok((headers, app.monitoring.instruments.metrics_text(&values)).into_response())
}

/// Returns the whole tree; agents outside the token's scope are left out.
///
/// # Errors
/// `forbidden`.
pub async fn service_status(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Read, None)?;
    // The answer depends on the scope, so only callers who see everything can share it.
    if caller.scope.agents.is_some() {
        return Ok(ok_response(&visible_status(&app, &caller).await));
    }
    // The shared value is the text, so that it is written once for all callers.
    let computation = async { Bytes::from(to_json_text(&visible_status(&app, &caller).await)) };
    let text = app.monitoring.shared_status.run_shared(computation).await;
    Ok(json_text_response("application/json", StatusCode::OK, text))
}

/// Returns the part of the tree that a caller may see now.
async fn visible_status(app: &AppState, caller: &Caller) -> ServiceStatus {
    let mut tree = app.api.tree.status().await;
    tree.agents.retain(|agent| may_see(caller, &agent.id));
    tree.agents.iter_mut().for_each(|agent| agent.program = app.agents.program_status(&agent.id));
    let (wardens, output_memory) = (app.machine.holder_status_fn)();
    let capabilities = capabilities_without_sockets(&app.machine.capabilities);
    let machine = MachineStatus { capabilities, wardens, output_memory: Some(output_memory) };
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let configuration = app.admin.configuration_status();
    let status = ServiceStatus { version, configuration, machine, ledger: None, tree };
    // The tokens of administrators can be limited to some agents too.
    if caller.scope.agents.is_some() {
        return restrict_to_visible_agents(status, caller);
    }
    let ledger = app.monitoring.storage_stats.storage_stats(&app.api).await.ok(); // A ledger that cannot be read hides nothing else.
    ServiceStatus { ledger, ..status }
}

fn may_see(caller: &Caller, agent: &AgentId) -> bool {
    caller.scope.allows(Right::Read, Some(agent))
}

/// Removes from the status what names an agent that the caller may not see, and numbers that count the work of other
/// callers. `tree.agents` is filtered already.
fn restrict_to_visible_agents(status: ServiceStatus, caller: &Caller) -> ServiceStatus {
    let ServiceStatus { version, configuration, machine, mut tree, .. } = status;
    let is_visible = |id: &str| AgentId::new(id).is_ok_and(|id| may_see(caller, &id));
    tree.alerts.retain(|alert| is_visible(&alert.subject));
    tree.credentials.clear();
    if let Some(scheduler) = &mut tree.scheduler {
        scheduler.due.retain(|due| may_see(caller, &due.agent));
        scheduler.counts = None;
    }
    if let Some(retention) = &mut tree.retention {
        retention.last_pass = None;
    }
    let machine = MachineStatus { wardens: Vec::new(), output_memory: None, ..machine };
    let ConfigurationStatus { generation, since, read_at, watched, mut switched, .. } =
        configuration;
    switched.retain(|id| is_visible(id));
    let configuration = ConfigurationStatus {
        generation,
        since,
        read_at,
        watched,
        switched,
        ..ConfigurationStatus::default()
    };
    ServiceStatus { version, configuration, machine, ledger: None, tree }
}

/// Returns the capabilities of the machine without its paths. The boundary of an agent reports whether a socket is a
/// gap.
fn capabilities_without_sockets(capabilities: &HostCapabilities) -> HostCapabilities {
    HostCapabilities { sockets: Vec::new(), ..capabilities.clone() }
}

/// Returns one agent of the tree.
///
/// # Errors
/// `agent-unknown` or `forbidden`.
pub async fn agent_status(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(agent): PathParam,
) -> Result<Response, ProblemBody> {
    let id = app.agents.resolve_id(&agent)?;
    caller.require_right(Right::Read, Some(&id))?;
    Ok(ok_response(&app.agent_status(&id).await?))
}

/// Returns the supported versions and bindings of A2A and the state of each agent.
///
/// # Errors
/// `forbidden`.
pub async fn a2a_status(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    headers: HeaderMap,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Read, None)?;
    let address = app.public_addresses.for_host(headers.get(HOST));
    let tree = app.api.tree.status().await;
    let visible_agents = tree.agents.into_iter().filter_map(|agent| {
        let spec = app.agents.get(&agent.id)?;
        caller.scope.allows(Right::Read, Some(&agent.id)).then(|| A2aAgent {
            interfaces: card::interfaces(&app, spec, &address)
                .into_iter()
                .map(interface_entry)
                .collect(),
            id: agent.id.to_string(),
            enabled: agent.enabled,
            health: agent.health,
            running: agent.work.running.len(),
            queued: agent.work.queued.len(),
        })
    });
    let agents = visible_agents.collect();
    let unique_names = |name: fn(&(Binding, ProtocolVersion)) -> &'static str| {
        let mut names: Vec<_> = card::SERVICE_FEATURES.interfaces.iter().map(name).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().map(str::to_owned).collect()
    };
    let versions = unique_names(|(_, version)| version.as_str());
    let bindings = unique_names(|(binding, _)| binding.as_str());
    Ok(ok_response(&to_json(&A2aStatus { versions, bindings, agents })?))
}

fn interface_entry(interface: Interface) -> A2aInterface {
    let Interface { url, binding, version, tenant } = interface;
    let (binding, version) = (binding.as_str().to_owned(), version.as_str().to_owned());
    A2aInterface { url, binding, version, tenant }
}
