//! Authenticates a call before its message is read, then finds its version and its agent.

use algonius_a2a::A2aMethod;
use algonius_actors::model::access::endpoint_config::{Binding, ProtocolVersion};
use algonius_actors::model::access::principal::Caller;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::status;
use crate::serve::AppState;
use crate::serve::a2a::transport_metadata::{TransportMetadata, extension_uris};
use crate::serve::a2a::{dispatch, exposure, extension, version};
use crate::serve::auth::caller::{self, AuthenticatedCaller};
use crate::serve::auth::request_client::RequestClient;
use crate::serve::http::body;
use crate::serve::http::response::{EarlyRefusal, ProblemBody};

/// Metadata key that names an agent.
const AGENT_METADATA: &str = "a2a-agent";

/// Metadata key that names a protocol version.
const VERSION_METADATA: &str = "a2a-version";

/// Length of the prefix of each message: a flag and a length.
const MESSAGE_PREFIX_BYTES: usize = 5;

/// Head of an authenticated call.
#[derive(Clone)]
pub(super) struct GrpcCallHead {
    /// Caller, if the call has a token. The key of an agent, or the absence of a credential, is checked again with
    /// the message: it is valid for that agent only, and only the message may name the agent.
    caller: Option<Caller>,
    client: Option<RequestClient>,
    headers: HeaderMap,
    /// Agent whose name is the first label of the host name.
    host_agent: Option<AgentId>,
    version: ProtocolVersion,
}

/// Rejects requests that cannot be a call; passes a call on with its [`GrpcCallHead`] and its whole message.
pub(super) async fn intercept(
    State(app): State<AppState>,
    request: Request,
    next: Next,
) -> Response {
    if !is_grpc_call(request.headers()) {
        let failure = Failure::new(Code::ContentType, "the body must be `application/grpc`");
        return ProblemBody(failure).into_response();
    }
    let requested_extensions = extension_uris(request.headers());
    match authenticate_and_read(&app, request).await {
        Ok(request) => {
            let mut response = next.run(request).await;
            // Only the message may name the agent, so the response lists the extensions that all agents have.
            extension::add_extension_headers(
                &mut response,
                &requested_extensions,
                &extension::common_extensions(),
            );
            response
        }
        Err(refusal) => {
            let seconds = refusal.retry_after();
            let status =
                status::v1_status(&refusal.into_failure_with_retry_time(app.api.reader.now()));
            let mut response = status.into_http::<Body>();
            if let Some(seconds) = seconds {
                response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            }
            response
        }
    }
}

/// True if a request is a gRPC call, by its media type.
pub(super) fn is_grpc_call(headers: &HeaderMap) -> bool {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let suffix = text.and_then(|text| text.strip_prefix("application/grpc"));
    suffix.is_some_and(|suffix| suffix.is_empty() || suffix.starts_with(['+', ';']))
}

async fn authenticate_and_read(app: &AppState, request: Request) -> Result<Request, EarlyRefusal> {
    let (mut parts, body) = request.into_parts();
    let client = parts.extensions.get::<RequestClient>().cloned();
    let caller = if parts.headers.contains_key(header::AUTHORIZATION) {
        Some(caller::authenticate(app, client.as_ref(), &parts.headers, None).await?)
    } else {
        caller::check_access_to_some_agent(app, client.as_ref(), &parts.headers).await?;
        None
    };
    let host_header = parts.headers.get(header::HOST).and_then(|value| value.to_str().ok());
    let host_agent = parts.uri.host().or(host_header).and_then(|host| agent_of_host(app, host));
    // The memory for the message counts for its caller, also if a key alone names the caller.
    let (authenticator, now) = (&app.access_control.authenticator, app.api.reader.now());
    let principal = authenticator.find_caller_for_any_agent(&parts.headers, now);
    let principal = principal.map(|caller| caller.principal);
    let headers = parts.headers.clone();
    // The service that decodes the message knows its version and replaces this value.
    let version = ProtocolVersion::V0_3;
    parts.extensions.insert(GrpcCallHead { caller, client, headers, host_agent, version });
    // The limit of the configuration is that of the message; the frame comes on top.
    let limit = app.body_limits.max_bytes.saturating_add(MESSAGE_PREFIX_BYTES);
    let message = body::read_body(app, principal, body, limit).await?;
    Ok(Request::from_parts(parts, Body::from(message)))
}

/// Returns the agent that the first label of a host names. Host names are not case-sensitive.
fn agent_of_host(app: &AppState, host: &str) -> Option<AgentId> {
    // A host without a dot is no name below a domain, for example `localhost`.
    let (label, _) = host.split_once('.')?;
    let mut ids = app.agents.all().map(|spec| &spec.id);
    ids.find(|id| id.as_str().eq_ignore_ascii_case(label)).cloned()
}

impl GrpcCallHead {
    /// Splits a call into its head and its message, and checks that a named version is this version.
    pub(super) fn split_and_check_version<T>(
        mut request: tonic::Request<T>,
        version: ProtocolVersion,
    ) -> Result<(Self, T), Failure> {
        let call = request.extensions_mut().remove::<Self>();
        let missing_head = || Failure::new(Code::Internal, "the head of the call is missing");
        let call = Self { version, ..call.ok_or_else(missing_head)? };
        // Clients name the version on every binding. The path decides here, so another one is a mistake of the
        // client.
        for named_version in call.metadata_values(VERSION_METADATA)? {
            if !named_version.is_empty() && version::parse_version(named_version)? != version {
                let text = "`a2a-version` names another version than the service that is called";
                return Err(Failure::new(Code::VersionUnsupported, text));
            }
        }
        Ok((call, request.into_inner()))
    }

    /// Returns the metadata of the request.
    pub(super) fn transport_metadata(&self) -> Result<TransportMetadata, Failure> {
        TransportMetadata::from_headers(&self.headers)
    }

    /// Host name that the caller used.
    pub(super) fn requested_host(&self) -> Option<HeaderValue> {
        self.headers.get(header::HOST).cloned()
    }

    /// Returns the caller and the agent, if the agent offers the operation and the caller's token allows it. Counts
    /// against the agent's rate limit.
    pub(super) async fn resolve_agent_and_authorize(
        self,
        app: &AppState,
        tenant: &str,
        a2a_method: A2aMethod,
    ) -> Result<(Caller, AgentId), Failure> {
        let agent = self.resolve_agent(app, tenant)?;
        let spec = app.agents.get(&agent).ok_or_else(unknown_agent)?;
        let caller_result = match self.caller {
            Some(caller) => Ok(caller),
            None => {
                caller::authenticate(app, self.client.as_ref(), &self.headers, Some(&agent)).await
            }
        };
        let caller = caller_result
            .map_err(|refusal| refusal.into_failure_with_retry_time(app.api.reader.now()))?;
        // The message names the agent, so the count cannot happen earlier as on the other transports.
        app.access_control
            .rate_limiter
            .try_acquire(spec)
            .await
            .map_err(|refusal| refusal.into_failure_with_retry_time(app.api.reader.now()))?;
        exposure::check_operation(
            spec,
            self.version,
            Binding::Grpc,
            dispatch::exposed_operation_of(a2a_method),
        )?;
        let caller = AuthenticatedCaller(caller)
            .require_right(dispatch::required_right(a2a_method), Some(&agent))?;
        Ok((caller, agent))
    }

    /// Returns the agent of the call, in this order: the tenant of the message, metadata, host name, default agent.
    fn resolve_agent(&self, app: &AppState, tenant: &str) -> Result<AgentId, Failure> {
        match (tenant, self.metadata_values(AGENT_METADATA)?.as_slice()) {
            ("", []) => self
                .host_agent
                .clone()
                .or_else(|| app.agents.default_agent.clone())
                .ok_or_else(no_agent_failure),
            ("", [name]) => app.agents.resolve_id(name),
            ("", _) => {
                let text = "metadata `a2a-agent` must name one agent";
                Err(Failure::new(Code::InvalidParams, text))
            }
            (tenant, _) => app.agents.resolve_id(tenant),
        }
    }

    fn metadata_values(&self, name: &str) -> Result<Vec<&str>, Failure> {
        let header_values = self.headers.get_all(name).iter().map(HeaderValue::to_str);
        header_values.collect::<Result<_, _>>().map_err(|_unreadable| {
            Failure::new(Code::InvalidParams, format!("metadata `{name}` must be plain text"))
        })
    }
}

fn unknown_agent() -> Failure {
    Failure::new(Code::AgentUnknown, "there is no such agent")
}

fn no_agent_failure() -> Failure {
    let text = "the call names no agent: name one by `tenant` (1.0), by metadata `a2a-agent` or by \
                the first label of the host; this service has no default agent";
    Failure::new(Code::AgentUnknown, text)
}
