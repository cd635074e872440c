//! Agent cards, at every place where clients look for them: they tell what is on, and no more.

use algonius_actors::model::agent::{Access, AgentSpec, Skill};
use algonius_actors::model::code::Code;
use algonius_actors::model::exposure::{Credential, Operation};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::sandbox::Enforcement;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::answer::{Problem, Refused, json};
use super::segment::Segment;
use super::{App, auth, extension, jsonrpc};
use crate::wire::a2a::v1::{Binding, Card, CardSecurity, CardSkill, Interface, Version};
use crate::wire::a2a::{self, CardForm};

/// What this service can do at all. An agent's card tells what both it and the service offer.
pub struct Served {
    /// The ways in.
    pub ways: &'static [(Binding, Version)],
    /// The operations of which cards tell.
    pub operations: &'static [Operation],
}

/// What is served.
pub const SERVED: Served = Served {
    ways: &[
        (Binding::JsonRpc, Version::V1_0),
        (Binding::HttpJson, Version::V1_0),
        (Binding::Grpc, Version::V1_0),
        (Binding::JsonRpc, Version::V0_3),
        (Binding::HttpJson, Version::V0_3),
        (Binding::Grpc, Version::V0_3),
    ],
    operations: &[Operation::Stream, Operation::Push, Operation::ExtendedCard],
};

/// Where gRPC clients connect. `{agent}` stands for the agent's id.
#[derive(Debug, Clone)]
pub struct GrpcUrls {
    /// Those of 0.3.
    pub v0_3: String,
    /// Those of 1.0.
    pub v1_0: String,
}

impl GrpcUrls {
    /// As given, or as follows from where callers reach the service: a URL for clients of 0.3,
    /// host and port for those of 1.0.
    #[must_use]
    pub fn new(v0_3: Option<String>, v1_0: Option<String>, public_url: &str) -> Self {
        let (scheme, rest) = public_url.split_once("://").unwrap_or(("http", public_url));
        let host = rest.split('/').next().unwrap_or_default();
        let after = host.rsplit(']').next().unwrap_or(host);
        let port = if scheme == "https" { 443 } else { 80 };
        let host = if after.contains(':') { host.to_owned() } else { format!("{host}:{port}") };
        Self {
            v0_3: v0_3.unwrap_or_else(|| format!("{scheme}://{host}")),
            v1_0: v1_0.unwrap_or(host),
        }
    }
}

/// Whoever may look at cards: everybody, or those with a token where cards are not public. Asked
/// for first, so that others do not learn which agents there are.
pub struct Onlooker;

impl FromRequestParts<App> for Onlooker {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refused> {
        if !app.public_card {
            auth::enter_by(parts, app).await?;
        }
        Ok(Self)
    }
}

/// The card of one agent.
///
/// # Errors
/// `agent-unknown`.
pub async fn of_agent(
    State(app): State<App>,
    _: Onlooker,
    Segment(agent): Segment,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    show(&app, &jsonrpc::known(&app, &agent)?, &headers)
}

/// The card of the default agent.
///
/// # Errors
/// `agent-unknown` when there is none.
pub async fn of_host(
    State(app): State<App>,
    _: Onlooker,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let none = || Failure::new(Code::AgentUnknown, "this service has no default agent");
    show(&app, app.default_agent.as_ref().ok_or_else(none)?, &headers)
}

fn show(app: &App, id: &AgentId, headers: &HeaderMap) -> Result<Response, Problem> {
    let body = written(&of(app, id)?, headers);
    Ok(kept(&body, app.public_card, app.begun, headers))
}

/// What the card of an agent tells.
///
/// # Errors
/// `agent-unknown`.
pub fn of(app: &App, id: &AgentId) -> Result<Card, Failure> {
    let none = || Failure::new(Code::AgentUnknown, "there is no such agent");
    app.agents.get(id).map(|spec| card(app, spec)).ok_or_else(none)
}

/// The card for an authenticated caller, in the form of its version.
///
/// # Errors
/// `agent-unknown`.
pub fn shown(app: &App, id: &AgentId, version: Version) -> Result<Value, Failure> {
    let form = match version {
        Version::V0_3 => CardForm::Only0_3,
        Version::V1_0 => CardForm::Pure1_0,
    };
    of(app, id).map(|card| a2a::card(&card, form))
}

/// A card in the form that the request asks for by `A2A-Version`: readers of 1.0 may be strict
/// about fields that they do not know.
fn written(card: &Card, headers: &HeaderMap) -> Value {
    let speaks = |version| card.interfaces.iter().any(|way| way.version == version);
    let asked = headers.get("a2a-version").and_then(|value| value.to_str().ok());
    let is_new = asked.is_some_and(|version| version.trim().starts_with("1."));
    let form = match (speaks(Version::V0_3), speaks(Version::V1_0)) {
        (true, true) if is_new => CardForm::Pure1_0,
        (true, true) => CardForm::Hybrid,
        (false, _) => CardForm::Pure1_0,
        (true, false) => CardForm::Only0_3,
    };
    a2a::card(card, form)
}

/// An answer that the caller may keep, and that is not sent again to who has it.
fn kept(body: &Value, is_public: bool, since: DateTime<Utc>, headers: &HeaderMap) -> Response {
    let hash = Sha256::digest(body.to_string());
    let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{hex}\"");
    let mut response = if has(headers, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        json("application/json", StatusCode::OK, body)
    };
    let (control, vary) = if is_public {
        ("public, max-age=300", "A2A-Version")
    } else {
        ("no-store", "A2A-Version, Authorization")
    };
    let all = response.headers_mut();
    all.insert(header::CACHE_CONTROL, HeaderValue::from_static(control));
    all.insert(header::VARY, HeaderValue::from_static(vary));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        all.insert(header::ETAG, tag);
    }
    // Cards are made of the configuration, which is read at the start.
    let since = since.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    if let Ok(since) = HeaderValue::from_str(&since) {
        all.insert(header::LAST_MODIFIED, since);
    }
    response
}

/// Whether the caller has what has this tag.
fn has(headers: &HeaderMap, tag: &str) -> bool {
    let lines = headers.get_all(header::IF_NONE_MATCH).iter();
    let texts = lines.filter_map(|line| line.to_str().ok());
    let mut tags = texts.flat_map(|text| text.split(',')).map(str::trim);
    tags.any(|other| other == "*" || other.trim_start_matches("W/") == tag)
}

/// What is told of an agent.
#[must_use]
pub fn card(app: &App, spec: &AgentSpec) -> Card {
    let exposure = &spec.exposure;
    let skills = spec.skills.iter().map(|skill| {
        let Skill { id, name, description, tags } = skill.clone();
        CardSkill { id, name, description, tags }
    });
    let tells =
        |operation: Operation| SERVED.operations.contains(&operation) && exposure.offers(operation);
    Card {
        name: spec.name.clone(),
        description: described(spec),
        version: spec.version.clone(),
        interfaces: ways(app, spec),
        streaming: tells(Operation::Stream),
        push: tells(Operation::Push),
        extended: tells(Operation::ExtendedCard),
        extensions: extension::offered(spec),
        input_modes: exposure.input_modes.clone(),
        output_modes: exposure.output_modes.clone(),
        skills: skills.collect(),
        security: match &exposure.credential {
            Credential::Bearer => CardSecurity::Bearer,
            Credential::ApiKey(header) => CardSecurity::ApiKey(header.clone()),
            Credential::Nothing => CardSecurity::Nothing,
        },
    }
}

/// Said of an agent that reads only by its own word.
const UNHELD: &str = "It is to change nothing, which nothing enforces here.";
/// Said where the system cannot refuse all.
const HALF_HELD: &str = "It is to change nothing, which is enforced in part only here.";

/// What it does, and what of its access is its word alone.
fn described(spec: &AgentSpec) -> String {
    let about = match (spec.access, spec.enforcement) {
        (Access::ReadOnly, Enforcement::Off | Enforcement::Unavailable) => UNHELD,
        (Access::ReadOnly, Enforcement::Partial) => HALF_HELD,
        _ => return spec.description.clone(),
    };
    format!("{} {about}", spec.description.trim_end())
}

/// The ways in: those of the agent that the service has too, by binding, then by version.
#[must_use]
pub fn ways(app: &App, spec: &AgentSpec) -> Vec<Interface> {
    let exposure = &spec.exposure;
    let ways = exposure
        .bindings
        .iter()
        .flat_map(|binding| exposure.versions.iter().map(|version| (*binding, *version)));
    let served = ways.filter(|way| SERVED.ways.contains(way));
    served.filter_map(|(binding, version)| interface(app, spec, binding, version)).collect()
}

/// One way in. A client of 0.3 cannot name an agent over gRPC: it reaches the default agent, or
/// the one that the host's name tells.
fn interface(app: &App, spec: &AgentSpec, binding: Binding, version: Version) -> Option<Interface> {
    let id = spec.id.as_str();
    let (url, tenant) = match (binding, version) {
        (Binding::JsonRpc, _) | (Binding::HttpJson, Version::V1_0) => {
            (format!("{}/v1", base(app, spec)), None)
        }
        (Binding::HttpJson, Version::V0_3) => (base(app, spec), None),
        (Binding::Grpc, Version::V0_3) => {
            let url = &app.grpc.v0_3;
            let leads = url.contains("{agent}") || app.default_agent.as_ref() == Some(&spec.id);
            (leads.then(|| url.replace("{agent}", id))?, None)
        }
        (Binding::Grpc, Version::V1_0) => {
            (app.grpc.v1_0.replace("{agent}", id), Some(id.to_owned()))
        }
    };
    Some(Interface { url, binding, version, tenant })
}

/// Where the paths of an agent begin.
fn base(app: &App, spec: &AgentSpec) -> String {
    let usual = || format!("/agents/{}", spec.id);
    let path = spec.exposure.base_path.clone().unwrap_or_else(usual);
    format!("{}{path}", app.public_url)
}

/// Where the JSON-RPC door of an agent is.
#[must_use]
pub fn url(app: &App, spec: &AgentSpec) -> String {
    format!("{}/v1", base(app, spec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grpc_is_reached_where_the_service_is() {
        for (public, v0_3, v1_0) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080", "127.0.0.1:8080"),
            ("https://a.example/base", "https://a.example:443", "a.example:443"),
            ("http://[::1]", "http://[::1]:80", "[::1]:80"),
        ] {
            let urls = GrpcUrls::new(None, None, public);
            assert_eq!((urls.v0_3.as_str(), urls.v1_0.as_str()), (v0_3, v1_0));
        }
    }

    #[test]
    fn a_card_is_sent_once_to_who_keeps_it() {
        let body = serde_json::json!({"name": "a"});
        let first = kept(&body, true, DateTime::default(), &HeaderMap::new());
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
            let answer = kept(&body, true, DateTime::default(), &headers);
            assert_eq!((answer.status(), &answer.headers()[header::ETAG]), (status, &tag));
        }
    }
}
