//! Administration at run time: the configuration, agent switches and tokens.

mod environment;

use std::path::Path;

use algonius_a2a::json_object::document::parse_document;
use algonius_a2a::problem;
use algonius_actors::model::access::principal::{Caller, NewToken, Right, Scope};
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use async_trait::async_trait;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};

use crate::serve::AppState;
use crate::serve::auth::caller::AuthenticatedCaller;
use crate::serve::http::body;
use crate::serve::http::path_param::PathParam;
use crate::serve::http::response::{self, ProblemBody, ok_response, to_json};
use crate::wire::admin::{
    ConfigurationError, ConfigurationStatus, CreatedToken, ReloadRejection, ReloadResult,
    SwitchRejection, SwitchedAgent, TokenEntry, TokenList, TokenRequest,
};
use crate::wire::api::service::Empty;

pub use environment::{EnvironmentQuery, environment};

/// Properties of a new token, without its text.
#[derive(Debug, Clone)]
pub struct TokenSpec {
    /// Name of the token's principal.
    pub name: String,
    /// Rights of the token.
    pub scope: Scope,
    /// Time at which the token expires; `None` means never.
    pub expires_at: Option<DateTime<Utc>>,
    /// True if the new token replaces one with the same name.
    pub replaces_existing: bool,
}

impl TokenSpec {
    /// Returns the token for a text with this digest.
    #[must_use]
    pub fn into_new_token(self, hash: [u8; 32]) -> NewToken {
        NewToken { name: self.name, hash, scope: self.scope, expires_at: self.expires_at }
    }
}

/// Token entry with its scope.
pub type ListedToken = (TokenEntry, Scope);

/// Result of enabling or disabling an agent: the new state, or all errors that prevent it.
pub type SwitchResult = Result<SwitchedAgent, Vec<ConfigurationError>>;

/// Administration of the service; executes one change at a time.
#[async_trait]
pub trait Administration: Send + Sync + 'static {
    /// Reads the configuration again and applies all changes that need no restart.
    ///
    /// # Errors
    /// Fails if the task that executes changes has ended.
    async fn reload(&self) -> Result<ReloadResult, Failure>;

    /// Returns the configuration in force.
    fn configuration_status(&self) -> ConfigurationStatus;

    /// True if the service reads its configuration from this file; without a file, true if the service runs on the
    /// shipped configuration.
    fn reads_config_file(&self, file: Option<&Path>) -> bool;

    /// Enables or disables an agent. When this function returns, the change is stored and survives reloads and
    /// restarts.
    ///
    /// # Errors
    /// `agent-unknown`; the inner error lists the faults of an agent that cannot be enabled.
    async fn switch_agent(&self, agent: AgentId, is_enabled: bool)
    -> Result<SwitchResult, Failure>;

    /// Returns all tokens.
    ///
    /// # Errors
    /// Fails if the tokens cannot be read.
    async fn list_tokens(&self) -> Result<Vec<ListedToken>, Failure>;

    /// Creates a token, which is valid when this function returns.
    ///
    /// # Errors
    /// `token-exists`; fails also if the token cannot be stored.
    async fn create_token(&self, spec: TokenSpec) -> Result<CreatedToken, Failure>;

    /// Removes a token, which is no longer valid when this function returns.
    ///
    /// # Errors
    /// `token-unknown`; fails also if the removal cannot be stored.
    async fn revoke_token(&self, name: String) -> Result<(), Failure>;

    /// Replaces the text of the operator's token; the token file contains the new text when this function returns.
    ///
    /// # Errors
    /// Fails if the new text cannot be stored.
    async fn rotate_operator_token(&self) -> Result<(), Failure>;
}

/// Reloads the configuration.
///
/// # Errors
/// `configuration-rejected`, with the list of errors.
pub async fn reload(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
) -> Result<Response, ProblemBody> {
    // A reload concerns all agents, so a token for some of them does not suffice.
    require_global_admin(caller)?;
    let result = app.admin.reload().await?;
    if result.rejected.is_empty() {
        return Ok(ok_response(&to_json(&result)?));
    }
    let message =
        format!("{} errors; the previous configuration stays in force", result.rejected.len());
    let failure = Failure::new(Code::ConfigurationRejected, message);
    let rejection = ReloadRejection { problem: problem::problem_document(&failure), result };
    Ok(response::problem_response(failure.code, &rejection))
}

/// Enables an agent.
///
/// # Errors
/// `agent-unknown`, `forbidden`; `configuration-rejected`, with the list of errors.
pub async fn enable_agent(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(id): PathParam,
) -> Result<Response, ProblemBody> {
    switch_agent(&app, caller, &id, true).await
}

/// Disables an agent: it stays in the directory and accepts no work. Running and queued executions continue.
///
/// # Errors
/// `agent-unknown`, `forbidden`.
pub async fn disable_agent(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(id): PathParam,
) -> Result<Response, ProblemBody> {
    switch_agent(&app, caller, &id, false).await
}

async fn switch_agent(
    app: &AppState,
    caller: AuthenticatedCaller,
    id: &str,
    is_enabled: bool,
) -> Result<Response, ProblemBody> {
    let agent = app.agents.resolve_id(id)?;
    // The right is checked for this agent: an administrator of some agents may switch those.
    caller.require_right(Right::Admin, Some(&agent))?;
    match app.admin.switch_agent(agent, is_enabled).await? {
        Ok(switched) => Ok(ok_response(&to_json(&switched)?)),
        Err(errors) => {
            let message = format!("the agent cannot be enabled: {} errors", errors.len());
            let failure = Failure::new(Code::ConfigurationRejected, message);
            let rejection =
                SwitchRejection { problem: problem::problem_document(&failure), rejected: errors };
            Ok(response::problem_response(failure.code, &rejection))
        }
    }
}

/// Lists the tokens that the caller may see: those whose scope is within that of its own token.
///
/// # Errors
/// `forbidden`.
pub async fn list_tokens(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Admin, None)?;
    let all_tokens = app.admin.list_tokens().await?.into_iter();
    let tokens = all_tokens.filter(|(_, scope)| caller.scope.covers(scope)).map(|(entry, _)| entry);
    Ok(ok_response(&to_json(&TokenList { tokens: tokens.collect() })?))
}

/// Creates a token and returns its text, which no other response contains.
///
/// # Errors
/// `invalid-params`, `token-exists`, or `forbidden` for a scope beyond that of the caller's own token.
pub async fn create_token(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    request: Request,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Admin, None)?;
    let token_request = read_token_request(&body::read_json_bytes(&app, request).await?)?;
    let spec = validate_token_request(&app, token_request)?;
    require_covered_scope(&caller, &spec.scope)?;
    // Otherwise a narrow token could take over the name, and the executions, of a wider one.
    if spec.replaces_existing {
        require_covered_token(&app, &caller, &spec.name).await?;
    }
    let created_token = app.admin.create_token(spec).await?;
    Ok((axum::http::StatusCode::CREATED, ok_response(&to_json(&created_token)?)).into_response())
}

/// Removes a token that was created at run time.
///
/// # Errors
/// `token-unknown`, or `forbidden` for a token whose scope is beyond that of the caller's own.
pub async fn revoke_token(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(name): PathParam,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Admin, None)?;
    // The administrator of some agents must not lock out an administrator of all.
    require_covered_token(&app, &caller, &name).await?;
    app.admin.revoke_token(name).await?;
    Ok(ok_response(&to_json(&Empty {})?))
}

/// Replaces the text of the operator's token.
///
/// # Errors
/// `forbidden`.
pub async fn rotate_operator_token(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
) -> Result<Response, ProblemBody> {
    require_global_admin(caller)?;
    app.admin.rotate_operator_token().await?;
    Ok(ok_response(&to_json(&Empty {})?))
}

/// Returns the caller if it is an administrator of all agents.
fn require_global_admin(caller: AuthenticatedCaller) -> Result<Caller, Failure> {
    let caller = caller.require_right(Right::Admin, None)?;
    if caller.scope.agents.is_none() { Ok(caller) } else { Err(scope_exceeded()) }
}

fn require_covered_scope(caller: &Caller, scope: &Scope) -> Result<(), Failure> {
    if caller.scope.covers(scope) { Ok(()) } else { Err(scope_exceeded()) }
}

fn scope_exceeded() -> Failure {
    Failure::new(Code::Forbidden, "the scope exceeds that of the token")
}

/// Rejects the change of an existing token whose scope is beyond that of the caller's own.
async fn require_covered_token(app: &AppState, caller: &Caller, name: &str) -> Result<(), Failure> {
    let tokens = app.admin.list_tokens().await?;
    tokens
        .iter()
        .filter(|(entry, _)| entry.name == name)
        .try_for_each(|(_, it)| require_covered_scope(caller, it))
}

fn read_token_request(bytes: &[u8]) -> Result<TokenRequest, Failure> {
    // In two steps, because bytes that are no JSON and a document of another shape have different codes.
    serde_json::from_value(parse_document(bytes)?).map_err(|error| {
        Failure::new(Code::InvalidParams, format!("the body does not describe a token: {error}"))
    })
}

/// Validates a token request by the rules of the configuration.
fn validate_token_request(
    app: &AppState,
    token_request: TokenRequest,
) -> Result<TokenSpec, Failure> {
    let TokenRequest { name, scopes, agents, expires, replace: replaces_existing } = token_request;
    let invalid_params = |text: String| Failure::new(Code::InvalidParams, text);
    let is_plain = name.chars().all(|char| !char.is_control());
    if name.trim().is_empty() || name.chars().count() > 64 || !is_plain {
        return Err(invalid_params("`name` must have 1 to 64 characters".to_owned()));
    }
    if expires.is_some_and(|expires| expires <= app.api.reader.now()) {
        return Err(invalid_params("`expires` must be in the future".to_owned()));
    }
    let mut rights = Vec::new();
    for word in scopes.unwrap_or_else(|| ["read", "run"].map(str::to_owned).to_vec()) {
        let right = Right::parse(&word);
        let hint = "`scopes` takes `read`, `run`, `approve` and `admin`";
        let right = right.ok_or_else(|| invalid_params(hint.to_owned()))?;
        if !rights.contains(&right) {
            rights.push(right);
        }
    }
    if rights.is_empty() {
        return Err(invalid_params("`scopes` must name at least one scope".to_owned()));
    }
    let agents =
        agents.map(|ids| ids.iter().map(|id| configured_agent(app, id)).collect()).transpose()?;
    Ok(TokenSpec { name, scope: Scope { rights, agents }, expires_at: expires, replaces_existing })
}

fn configured_agent(app: &AppState, id: &str) -> Result<AgentId, Failure> {
    let agent_id = AgentId::new(id).ok().filter(|id| app.agents.contains(id));
    agent_id.ok_or_else(|| Failure::new(Code::InvalidParams, "`agents` names an unknown agent"))
}
