//! Admission of a request: authenticates its caller, refuses wrong credentials, and counts calls to an agent.

use algonius_actors::model::access::principal::{Caller, Right};
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::HeaderMap;
use axum::http::request::Parts;

use super::authenticator::AuthenticationError;
use super::request_client::RequestClient;
use crate::serve::AppState;
use crate::serve::http::response::EarlyRefusal;

/// Authenticates a request; every transport calls this function. A valid credential is accepted whatever
/// other clients presented before; a wrong one counts against `client`.
///
/// # Errors
/// `unauthenticated`, with one answer for every cause, or `locked-out`.
pub async fn authenticate(
    app: &AppState,
    client: Option<&RequestClient>,
    headers: &HeaderMap,
    agent: Option<&AgentId>,
) -> Result<Caller, EarlyRefusal> {
    match app.access_control.authenticator.authenticate(headers, agent, app.api.reader.now()) {
        Ok(caller) => {
            // From now on the connection counts for its principal and no longer for its address (ADR 38). Anybody
            // can be an anonymous caller, so its connections still count for the address.
            let is_anonymous = app.access_control.authenticator.is_anonymous(&caller);
            if let Some(client) = client.filter(|_| !is_anonymous) {
                client.connection.assign_principal(caller.principal);
            }
            Ok(caller)
        }
        Err(error) => Err(record_failed_authentication(app, client, headers, error).await),
    }
}

async fn record_failed_authentication(
    app: &AppState,
    client: Option<&RequestClient>,
    headers: &HeaderMap,
    error: AuthenticationError,
) -> EarlyRefusal {
    let address = client.map(|client| client.address);
    app.access_control
        .lockouts
        .record_failed_authentication(address, error, || {
            app.access_control.authenticator.credential_digest(headers)
        })
        .await
}

/// Checks that a request without a token may enter at least one agent, before its message names the agent:
/// the body of a caller who may use no agent is not read.
///
/// # Errors
/// As [`authenticate`].
pub async fn check_access_to_some_agent(
    app: &AppState,
    client: Option<&RequestClient>,
    headers: &HeaderMap,
) -> Result<(), EarlyRefusal> {
    match app.access_control.authenticator.check_access_to_some_agent(headers, app.api.reader.now())
    {
        Ok(()) => Ok(()),
        Err(error) => Err(record_failed_authentication(app, client, headers, error).await),
    }
}

/// Authenticates the request with this head, for the agent that its path names.
///
/// # Errors
/// As [`authenticate`].
pub async fn authenticate_request(
    parts: &mut Parts,
    app: &AppState,
) -> Result<(Caller, Option<AgentId>), EarlyRefusal> {
    let params = RawPathParams::from_request_parts(parts, app).await.ok();
    let agent_id = params.as_ref().and_then(|params| {
        let param = params.iter().find(|(name, _)| *name == "agent")?;
        // An unknown agent is authenticated like the service itself: the response must not show which agents exist.
        AgentId::new(param.1).ok().filter(|id| app.agents.contains(id))
    });
    let caller =
        authenticate(app, parts.extensions.get(), &parts.headers, agent_id.as_ref()).await?;
    if !app.access_control.authenticator.is_anonymous(&caller) {
        parts.extensions.insert(caller.principal); // The memory for its body counts for it.
    }
    Ok((caller, agent_id))
}

/// Authenticated caller, as an extractor for handlers.
pub struct AuthenticatedCaller(pub Caller);

impl AuthenticatedCaller {
    /// Returns the caller if its token has this right.
    ///
    /// # Errors
    /// `forbidden`.
    pub fn require_right(self, right: Right, agent: Option<&AgentId>) -> Result<Caller, Failure> {
        if self.0.scope.allows(right, agent) {
            Ok(self.0)
        } else {
            Err(Failure::new(Code::Forbidden, "the token does not allow this"))
        }
    }
}

impl FromRequestParts<AppState> for AuthenticatedCaller {
    type Rejection = EarlyRefusal;

    /// Authenticates the caller. A request to an agent also counts against the rate limit of the agent, but only
    /// after authentication.
    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, EarlyRefusal> {
        let (caller, agent) = authenticate_request(parts, app).await?;
        let spec = agent.and_then(|agent| app.agents.get(&agent));
        // Paths of the API name agents too, and reading about an agent is no call to it.
        if let Some(spec) = spec.filter(|_| parts.uri.path().starts_with("/agents/")) {
            app.access_control.rate_limiter.try_acquire(spec).await?;
        }
        Ok(Self(caller))
    }
}
