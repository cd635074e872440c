//! Lets a call in: who asks, in which version, of which agent. Before its message is read.

use std::net::IpAddr;
use std::sync::Arc;

use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::code::Code;
use algonius_actors::model::exposure::{Binding, Credential, Version};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::principal::Caller;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::status;
use crate::serve::answer::{Problem, Refused};
use crate::serve::auth::{self, Who};
use crate::serve::beside::{Beside, extensions};
use crate::serve::peer::Client;
use crate::serve::{App, body, exposure, extension, perform, version};
use crate::wire::a2a::Method;

/// The metadata that names an agent.
const AGENT: &str = "a2a-agent";

/// The metadata that names a version of the protocol.
const VERSION: &str = "a2a-version";

/// What stands before each message: a flag and a length.
const PREFIX: usize = 5;

/// What is known of a call before its message is read.
#[derive(Clone)]
pub(super) struct Arrival {
    /// Who asks, where the call has a token. A key or nothing is good at the door of its agent
    /// only, and the message may name another than the head.
    caller: Option<Caller>,
    client: Option<IpAddr>,
    headers: HeaderMap,
    /// The agent whose name the host begins with.
    host: Option<AgentId>,
    version: Version,
}

/// Answers what cannot be a call; hands on what can, with its [`Arrival`] and its whole message.
pub(super) async fn admit(State(app): State<App>, request: Request, next: Next) -> Response {
    if !says_grpc(request.headers()) {
        let failure = Failure::new(Code::ContentType, "the body must be `application/grpc`");
        return Problem(failure).into_response();
    }
    let wanted = extensions(request.headers());
    match arrived(&app, request).await {
        Ok(request) => {
            let mut response = next.run(request).await;
            // Which agent is meant may stand in the message: told is what all have.
            extension::name(&mut response, &wanted, &extension::always());
            response
        }
        Err(refused) => status::of(&refused.failure).into_http::<Body>(),
    }
}

/// Whether a request is one of gRPC, by its media type.
pub(super) fn says_grpc(headers: &HeaderMap) -> bool {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let rest = text.and_then(|text| text.strip_prefix("application/grpc"));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', ';']))
}

async fn arrived(app: &App, request: Request) -> Result<Request, Refused> {
    let (mut parts, rest) = request.into_parts();
    let client = parts.extensions.get().map(|Client(address)| *address);
    let mut caller = None;
    if parts.headers.contains_key(header::AUTHORIZATION) || !app.agents.values().any(has_door) {
        caller = Some(auth::enter(app, client, &parts.headers, None).await?);
    }
    let named = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = parts.uri.host().or(named).and_then(|host| by_host(app, host));
    let headers = parts.headers.clone();
    let version = Version::V0_3;
    parts.extensions.insert(Arrival { caller, client, headers, host, version });
    let message = body::whole(app, rest, app.max_body.saturating_add(PREFIX)).await?;
    Ok(Request::from_parts(parts, Body::from(message)))
}

/// Whether an agent lets callers in who have no token.
fn has_door(spec: &Arc<AgentSpec>) -> bool {
    let keyed = matches!(spec.exposure.credential, Credential::ApiKey(_));
    keyed || spec.exposure.open
}

/// The agent that the first label of a host names. Hosts know no upper and lower case.
fn by_host(app: &App, host: &str) -> Option<AgentId> {
    let (label, _) = host.split_once('.')?;
    app.agents.keys().find(|id| id.as_str().eq_ignore_ascii_case(label)).cloned()
}

impl Arrival {
    /// Takes a call apart and sees that it speaks this version, if it names one.
    pub(super) fn of<T>(
        mut request: tonic::Request<T>,
        version: Version,
    ) -> Result<(Self, T), Failure> {
        let arrival = request.extensions_mut().remove::<Self>();
        let lost = || Failure::new(Code::Internal, "the call lost its beginning");
        let arrival = Self { version, ..arrival.ok_or_else(lost)? };
        for said in arrival.values(VERSION)? {
            if !said.is_empty() && version::named(said)? != version {
                let text = "`a2a-version` names another version than the service that is called";
                return Err(Failure::new(Code::VersionUnsupported, text));
            }
        }
        Ok((arrival, request.into_inner()))
    }

    /// What the caller says beside its message.
    pub(super) fn beside(&self) -> Result<Beside, Failure> {
        Beside::of(&self.headers)
    }

    /// The caller and the agent that is meant, if the agent offers this and the caller's token
    /// allows it. Counts against the agent's rate.
    pub(super) async fn at(
        self,
        app: &App,
        tenant: &str,
        method: Method,
    ) -> Result<(Caller, AgentId), Failure> {
        let agent = self.agent(app, tenant)?;
        let spec = app.agents.get(&agent).ok_or_else(unknown)?;
        let entered = match self.caller {
            Some(caller) => Ok(caller),
            None => auth::enter(app, self.client, &self.headers, Some(&agent)).await,
        };
        let caller = entered.map_err(|refused| refused.failure)?;
        app.rates.count(spec).await.map_err(|refused| refused.failure)?;
        exposure::check(spec, self.version, Binding::Grpc, perform::offered(method))?;
        let caller = Who(caller).may(perform::right(method), Some(&agent))?;
        Ok((caller, agent))
    }

    /// Named is, in this order: by the message's tenant, by metadata, by the host, by default.
    fn agent(&self, app: &App, tenant: &str) -> Result<AgentId, Failure> {
        match (tenant, self.values(AGENT)?.as_slice()) {
            ("", []) => self.host.clone().or_else(|| app.default_agent.clone()).ok_or_else(unnamed),
            ("", [name]) => known(app, name),
            ("", _) => {
                let text = "metadata `a2a-agent` must name one agent";
                Err(Failure::new(Code::InvalidParams, text))
            }
            (tenant, _) => known(app, tenant),
        }
    }

    fn values(&self, name: &str) -> Result<Vec<&str>, Failure> {
        let values = self.headers.get_all(name).iter().map(HeaderValue::to_str);
        values.collect::<Result<_, _>>().map_err(|_unreadable| {
            Failure::new(Code::InvalidParams, format!("metadata `{name}` must be plain text"))
        })
    }
}

fn known(app: &App, name: &str) -> Result<AgentId, Failure> {
    let id = AgentId::new(name).ok().filter(|id| app.agents.contains_key(id));
    id.ok_or_else(unknown)
}

fn unknown() -> Failure {
    Failure::new(Code::AgentUnknown, "there is no such agent")
}

fn unnamed() -> Failure {
    let text = "the call names no agent: name one by `tenant` (1.0), by metadata `a2a-agent` or by \
                the first label of the host; this service has no default agent";
    Failure::new(Code::AgentUnknown, text)
}
