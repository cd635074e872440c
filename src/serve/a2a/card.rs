//! Agent cards at all paths where clients request them. A card lists only the enabled features.

pub mod public_address;

use algonius_a2a::v1::{Binding, Card, CardCapabilities, CardSecurity, Interface, ProtocolVersion};
use algonius_a2a::{self, CardFormat};
use algonius_actors::model::access::endpoint_config::{CallerAuth, ProtocolOperation};
use algonius_actors::model::agent::{Access, AgentSpec};
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::host::sandbox::Enforcement;
use algonius_actors::model::id::AgentId;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::extension;
use crate::serve::AppState;
use crate::serve::auth::caller;
use crate::serve::http::path_param::PathParam;
use crate::serve::http::response::{EarlyRefusal, ProblemBody, json_response};
use public_address::PublicAddress;

/// Features of this service. An agent's card lists the features that both the agent and the service offer.
pub struct ServiceFeatures {
    /// Interfaces of the service.
    pub interfaces: &'static [(Binding, ProtocolVersion)],
    /// Operations that cards mention.
    pub operations: &'static [ProtocolOperation],
}

/// Features of this service.
pub const SERVICE_FEATURES: ServiceFeatures = ServiceFeatures {
    interfaces: &[
        (Binding::JsonRpc, ProtocolVersion::V1_0),
        (Binding::HttpJson, ProtocolVersion::V1_0),
        (Binding::Grpc, ProtocolVersion::V1_0),
        (Binding::JsonRpc, ProtocolVersion::V0_3),
        (Binding::HttpJson, ProtocolVersion::V0_3),
        (Binding::Grpc, ProtocolVersion::V0_3),
    ],
    operations: &[
        ProtocolOperation::Stream,
        ProtocolOperation::Push,
        ProtocolOperation::ExtendedCard,
    ],
};

/// Caller that may read cards: everybody or, if cards are not public, callers with a token. Handlers extract this
/// type first, so that other callers do not learn which agents exist.
pub struct CardViewer;

impl FromRequestParts<AppState> for CardViewer {
    type Rejection = EarlyRefusal;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, EarlyRefusal> {
        // Everybody may read public cards, so wrong credentials do not count against an address here.
        if !app.access_control.has_public_cards {
            caller::authenticate_request(parts, app).await?;
        }
        Ok(Self)
    }
}

/// Returns the card of one agent.
///
/// # Errors
/// `agent-unknown`.
pub async fn agent_card(
    State(app): State<AppState>,
    _: CardViewer,
    PathParam(agent): PathParam,
    headers: HeaderMap,
) -> Result<Response, ProblemBody> {
    card_response(&app, &app.agents.resolve_id(&agent)?, &headers)
}

/// Returns the card of one agent at a path that names it as a file: `ID.json`.
///
/// # Errors
/// `agent-unknown`, also for a name without the ending.
pub async fn agent_card_file(
    State(app): State<AppState>,
    _: CardViewer,
    PathParam(file): PathParam,
    headers: HeaderMap,
) -> Result<Response, ProblemBody> {
    let agent = file.strip_suffix(".json").unwrap_or_default();
    card_response(&app, &app.agents.resolve_id(agent)?, &headers)
}

/// Returns the card of the default agent.
///
/// # Errors
/// `agent-unknown` if the service has no default agent.
pub async fn default_agent_card(
    State(app): State<AppState>,
    _: CardViewer,
    headers: HeaderMap,
) -> Result<Response, ProblemBody> {
    let no_default_agent = || Failure::new(Code::AgentUnknown, "this service has no default agent");
    card_response(&app, app.agents.default_agent.as_ref().ok_or_else(no_default_agent)?, &headers)
}

fn card_response(
    app: &AppState,
    id: &AgentId,
    headers: &HeaderMap,
) -> Result<Response, ProblemBody> {
    let body = negotiated_json(&card_for_host(app, id, headers.get(header::HOST))?, headers);
    Ok(cacheable_response(
        &body,
        app.access_control.has_public_cards,
        app.config_in_force_since,
        headers,
    ))
}

/// Returns the card of an agent for a caller that used this host.
///
/// # Errors
/// `agent-unknown`.
pub fn card_for_host(
    app: &AppState,
    id: &AgentId,
    host: Option<&HeaderValue>,
) -> Result<Card, Failure> {
    let no_such_agent = || Failure::new(Code::AgentUnknown, "there is no such agent");
    app.agents
        .get(id)
        .map(|spec| build_card(app, spec, &app.public_addresses.for_host(host)))
        .ok_or_else(no_such_agent)
}

/// Returns the card for an authenticated caller, in the form of its version.
///
/// # Errors
/// `agent-unknown`.
pub fn card_json(
    app: &AppState,
    id: &AgentId,
    version: ProtocolVersion,
    host: Option<&HeaderValue>,
) -> Result<Value, Failure> {
    let format = match version {
        ProtocolVersion::V0_3 => CardFormat::Only0_3,
        ProtocolVersion::V1_0 => CardFormat::Only1_0,
    };
    card_for_host(app, id, host).map(|card| algonius_a2a::card_json(&card, format))
}

/// Writes a card in the form that the request selects with `A2A-Version`: readers of 1.0 may reject unknown fields.
fn negotiated_json(card: &Card, headers: &HeaderMap) -> Value {
    let offers_version = |version| card.interfaces.iter().any(|it| it.version == version);
    let requested_version = headers.get("a2a-version").and_then(|value| value.to_str().ok());
    let is_v1_requested = requested_version.is_some_and(|version| version.trim().starts_with("1."));
    let format =
        match (offers_version(ProtocolVersion::V0_3), offers_version(ProtocolVersion::V1_0)) {
            (true, true) if is_v1_requested => CardFormat::Only1_0,
            (true, true) => CardFormat::Hybrid,
            (false, _) => CardFormat::Only1_0,
            (true, false) => CardFormat::Only0_3,
        };
    algonius_a2a::card_json(card, format)
}

/// Creates a response that the caller may cache; a caller with the current version receives only the status 304.
fn cacheable_response(
    body: &Value,
    is_public: bool,
    last_modified: DateTime<Utc>,
    headers: &HeaderMap,
) -> Response {
    // The content, not the time of the configuration: the same card may differ by the host of the caller.
    let hash = Sha256::digest(body.to_string());
    let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let etag = format!("\"{hex}\"");
    let mut response = if if_none_match_contains(headers, &etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        json_response("application/json", StatusCode::OK, body)
    };
    let (cache_control, vary) = if is_public {
        ("public, max-age=300", "A2A-Version")
    } else {
        // A shared cache must not serve a card to callers without a token.
        ("no-store", "A2A-Version, Authorization")
    };
    let response_headers = response.headers_mut();
    response_headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache_control));
    response_headers.insert(header::VARY, HeaderValue::from_static(vary));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        response_headers.insert(header::ETAG, etag);
    }
    // The content of a card depends only on the configuration.
    let last_modified = last_modified.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    if let Ok(last_modified) = HeaderValue::from_str(&last_modified) {
        response_headers.insert(header::LAST_MODIFIED, last_modified);
    }
    response
}

/// True if the caller already has the version with this entity tag.
fn if_none_match_contains(headers: &HeaderMap, etag: &str) -> bool {
    let header_values = headers.get_all(header::IF_NONE_MATCH).iter();
    let texts = header_values.filter_map(|line| line.to_str().ok());
    let mut tags = texts.flat_map(|text| text.split(',')).map(str::trim);
    tags.any(|candidate| candidate == "*" || candidate.trim_start_matches("W/") == etag)
}

/// Builds the card of an agent.
#[must_use]
pub fn build_card(app: &AppState, spec: &AgentSpec, address: &PublicAddress) -> Card {
    let endpoint_config = &spec.endpoint_config;
    let is_listed = |it: &Interface| endpoint_config.card_bindings.contains(&it.binding);
    let offers = |operation: ProtocolOperation| {
        SERVICE_FEATURES.operations.contains(&operation) && endpoint_config.offers(operation)
    };
    Card {
        name: spec.profile.name.clone(),
        description: card_description(spec),
        version: spec.profile.version.clone(),
        interfaces: interfaces(app, spec, address).into_iter().filter(is_listed).collect(),
        capabilities: CardCapabilities {
            streaming: offers(ProtocolOperation::Stream),
            push_notifications: offers(ProtocolOperation::Push),
            has_extended_card: offers(ProtocolOperation::ExtendedCard),
            extensions: extension::agent_extensions(spec),
        },
        input_modes: endpoint_config.input_modes.clone(),
        output_modes: endpoint_config.output_modes.clone(),
        skills: spec.profile.skills.clone(),
        details: endpoint_config.card_details.clone(),
        security: match &endpoint_config.caller_auth {
            CallerAuth::Bearer => CardSecurity::Bearer,
            CallerAuth::ApiKeyHeader(header) => CardSecurity::ApiKey(header.clone()),
            CallerAuth::NoAuth => CardSecurity::NoAuthentication,
        },
    }
}

/// Sentence on the card of a read-only agent whose access nothing enforces.
const NOT_ENFORCED_TEXT: &str = "It is read-only, but nothing enforces this here.";
/// Sentence on the card of a read-only agent whose access is enforced in part.
const PARTLY_ENFORCED_TEXT: &str = "It is read-only, which is enforced only in part here.";

/// Description of an agent that refuses all work now.
const UNAVAILABLE_TEXT: &str = "It is unavailable: its program is not installed.";

/// Returns the description of the agent, whether it is unavailable, and the part of its
/// access that is not enforced.
fn card_description(spec: &AgentSpec) -> String {
    if spec.unavailable_failure().is_some() {
        return format!("{} {UNAVAILABLE_TEXT}", spec.profile.description.trim_end());
    }
    let enforcement = spec.confinement().map(|confinement| confinement.enforcement);
    let enforcement_note = match (spec.access, enforcement) {
        (Access::ReadOnly, Some(Enforcement::Off | Enforcement::Unavailable)) => NOT_ENFORCED_TEXT,
        (Access::ReadOnly, Some(Enforcement::Partial)) => PARTLY_ENFORCED_TEXT,
        _ => return spec.profile.description.clone(),
    };
    format!("{} {enforcement_note}", spec.profile.description.trim_end())
}

/// Returns the interfaces of the agent that the service also offers, by binding, then by version.
#[must_use]
pub fn interfaces(app: &AppState, spec: &AgentSpec, address: &PublicAddress) -> Vec<Interface> {
    let endpoint_config = &spec.endpoint_config;
    let pairs = endpoint_config
        .bindings
        .iter()
        .flat_map(|binding| endpoint_config.versions.iter().map(|version| (*binding, *version)));
    let offered_pairs = pairs.filter(|pair| SERVICE_FEATURES.interfaces.contains(pair));
    offered_pairs.filter_map(|pair| interface(app, (spec, address), pair)).collect()
}

/// Returns one interface. A client of 0.3 cannot name an agent over gRPC: it reaches the default agent, or the agent
/// that the host name names.
fn interface(
    app: &AppState,
    (spec, address): (&AgentSpec, &PublicAddress),
    (binding, version): (Binding, ProtocolVersion),
) -> Option<Interface> {
    let id = spec.id.as_str();
    let (url, tenant) = match (binding, version) {
        (Binding::JsonRpc, _) | (Binding::HttpJson, ProtocolVersion::V1_0) => {
            (format!("{}/v1", base_url(address, spec)), None)
        }
        (Binding::HttpJson, ProtocolVersion::V0_3) => (base_url(address, spec), None),
        (Binding::Grpc, ProtocolVersion::V0_3) => {
            // A client of 0.3 cannot name the agent in its call, so an address that leads to another agent is left out.
            let url = &address.grpc.v0_3;
            let reaches_agent =
                url.contains("{agent}") || app.agents.default_agent.as_ref() == Some(&spec.id);
            (reaches_agent.then(|| url.replace("{agent}", id))?, None)
        }
        (Binding::Grpc, ProtocolVersion::V1_0) => {
            (address.grpc.v1_0.replace("{agent}", id), Some(id.to_owned()))
        }
    };
    Some(Interface { url, binding, version, tenant })
}

/// Returns the base URL of the paths of an agent.
fn base_url(address: &PublicAddress, spec: &AgentSpec) -> String {
    let default_path = || format!("/agents/{}", spec.id);
    let path = spec.endpoint_config.base_path.clone().unwrap_or_else(default_path);
    format!("{}{path}", address.url)
}

/// Returns the URL of the JSON-RPC endpoint of an agent.
#[must_use]
pub fn jsonrpc_url(address: &PublicAddress, spec: &AgentSpec) -> String {
    format!("{}/v1", base_url(address, spec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cached_card_is_not_sent_again() {
        let body = serde_json::json!({"name": "a"});
        let first = cacheable_response(&body, true, DateTime::default(), &HeaderMap::new());
        let tag = first.headers()[header::ETAG].clone();
        assert_eq!(first.status(), StatusCode::OK);
        for (line, status) in [
            (tag.to_str().expect("a tag").to_owned(), StatusCode::NOT_MODIFIED),
            (format!("\"x\", W/{}", tag.to_str().expect("a tag")), StatusCode::NOT_MODIFIED),
            ("*".to_owned(), StatusCode::NOT_MODIFIED),
            ("\"x\"".to_owned(), StatusCode::OK),
        ] {
            let line = HeaderValue::from_str(&line).expect("a header");
            let headers = HeaderMap::from_iter([(header::IF_NONE_MATCH, line)]);
            let answer = cacheable_response(&body, true, DateTime::default(), &headers);
            assert_eq!((answer.status(), &answer.headers()[header::ETAG]), (status, &tag));
        }
    }
}
