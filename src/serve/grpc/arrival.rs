//! Lets a call in: who asks, in which version, of which agent. Before its message is read.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::principal::{Caller, Right};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::status;
use crate::serve::answer::Problem;
use crate::serve::auth::Who;
use crate::serve::{App, body};

/// The metadata that names an agent.
const AGENT: &str = "a2a-agent";

/// The metadata that names a version of the protocol.
const VERSION: &str = "a2a-version";

/// What stands before each message: a flag and a length.
const PREFIX: usize = 5;

/// What is known of a call before its message is read.
#[derive(Clone)]
pub(super) struct Arrival {
    caller: Caller,
    versions: Vec<String>,
    agents: Vec<String>,
    /// The agent whose name the host begins with.
    host: Option<AgentId>,
}

/// Answers what cannot be a call; hands on what can, with its [`Arrival`] and its whole message.
pub(super) async fn admit(State(app): State<App>, request: Request, next: Next) -> Response {
    if !says_grpc(request.headers()) {
        let failure = Failure::new(Code::ContentType, "the body must be `application/grpc`");
        return Problem(failure).into_response();
    }
    match arrived(&app, request).await {
        Ok(request) => next.run(request).await,
        Err(failure) => status::of(&failure).into_http::<Body>(),
    }
}

fn says_grpc(headers: &HeaderMap) -> bool {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let rest = text.and_then(|text| text.strip_prefix("application/grpc"));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', ';']))
}

async fn arrived(app: &App, request: Request) -> Result<Request, Failure> {
    let (mut parts, rest) = request.into_parts();
    let caller = app.guard.admit(&parts.headers, app.gateway.now())?;
    let named = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = parts.uri.host().or(named).and_then(|host| by_host(app, host));
    let versions = values(&parts.headers, VERSION)?;
    let agents = values(&parts.headers, AGENT)?;
    parts.extensions.insert(Arrival { caller, versions, agents, host });
    let message = body::whole(app, rest, app.max_body.saturating_add(PREFIX)).await?;
    Ok(Request::from_parts(parts, Body::from(message)))
}

fn values(headers: &HeaderMap, name: &str) -> Result<Vec<String>, Failure> {
    let values = headers.get_all(name).iter().map(|value| value.to_str().map(str::to_owned));
    values.collect::<Result<_, _>>().map_err(|_unreadable| {
        Failure::new(Code::InvalidParams, format!("metadata `{name}` must be plain text"))
    })
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
        speaks: fn(&str) -> bool,
    ) -> Result<(Self, T), Failure> {
        let arrival = request.extensions_mut().remove::<Self>();
        let lost = || Failure::new(Code::Internal, "the call lost its beginning");
        let arrival = arrival.ok_or_else(lost)?;
        if arrival.versions.iter().all(|version| version.is_empty() || speaks(version)) {
            return Ok((arrival, request.into_inner()));
        }
        let text = "`a2a-version` names another version than this service; see the agent's card";
        Err(Failure::new(Code::VersionUnsupported, text))
    }

    /// The caller and the agent that is meant, if the caller's token allows this with it. Named
    /// is, in this order: by the message's tenant, by metadata, by the host, by default.
    pub(super) fn at(
        self,
        app: &App,
        tenant: &str,
        right: Right,
    ) -> Result<(Caller, AgentId), Failure> {
        let agent = match (tenant, self.agents.as_slice()) {
            ("", []) => self.host.or_else(|| app.default_agent.clone()).ok_or_else(unnamed)?,
            ("", [name]) => known(app, name)?,
            ("", _) => {
                let text = "metadata `a2a-agent` must name one agent";
                return Err(Failure::new(Code::InvalidParams, text));
            }
            (tenant, _) => known(app, tenant)?,
        };
        let caller = Who(self.caller).may(right, Some(&agent))?;
        Ok((caller, agent))
    }
}

fn known(app: &App, name: &str) -> Result<AgentId, Failure> {
    let id = AgentId::new(name).ok().filter(|id| app.agents.contains_key(id));
    id.ok_or_else(|| Failure::new(Code::AgentUnknown, "there is no such agent"))
}

fn unnamed() -> Failure {
    let text = "the call names no agent: name one by `tenant` (1.0), by metadata `a2a-agent` or by \
                the first label of the host; this service has no default agent";
    Failure::new(Code::AgentUnknown, text)
}
