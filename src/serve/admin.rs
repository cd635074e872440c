//! What an administrator changes while the service runs: the configuration and tokens.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::principal::{Caller, Right, Scope, TokenSeed};
use async_trait::async_trait;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde_json::Value;

use super::answer::{self, Problem, ok};
use super::auth::Who;
use super::segment::Segment;
use super::status::to_json;
use super::{App, body, jsonrpc};
use crate::wire::admin::{
    ConfigurationStatus, ReloadRejected, Reloaded, SwitchRejected, Switched, TokenEntry, TokenList,
    TokenMade, TokenOrder, Wrong,
};
use crate::wire::api::service::Done;
use crate::wire::problem;

/// What a token shall be, but for its text.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The name of its principal.
    pub name: String,
    /// What it allows.
    pub scope: Scope,
    /// When it stops to count.
    pub expires: Option<DateTime<Utc>>,
    /// Whether it takes the place of one of the same name.
    pub replaces: bool,
}

impl Wanted {
    /// The token of a text that has this digest.
    #[must_use]
    pub fn with(self, hash: [u8; 32]) -> TokenSeed {
        TokenSeed { name: self.name, hash, scope: self.scope, expires: self.expires }
    }
}

/// A token and what it allows.
pub type Known = (TokenEntry, Scope);

/// An agent that was switched, or everything that keeps it from being switched on.
pub type Switching = Result<Switched, Vec<Wrong>>;

/// Does what an administrator wants; one thing after the other.
#[async_trait]
pub trait Admin: Send + Sync + 'static {
    /// Reads the configuration again and applies what can be applied.
    ///
    /// # Errors
    /// When nobody is there any more to do it.
    async fn reload(&self) -> Result<Reloaded, Failure>;

    /// The configuration in force.
    fn configuration(&self) -> ConfigurationStatus;

    /// Switches an agent on or off, which holds, over reloads and restarts, when this returns.
    ///
    /// # Errors
    /// `agent-unknown`; `configuration-rejected` with what is wrong, when it cannot be switched on.
    async fn switch(&self, agent: AgentId, on: bool) -> Result<Switching, Failure>;

    /// Every token.
    ///
    /// # Errors
    /// When they could not be read.
    async fn tokens(&self) -> Result<Vec<Known>, Failure>;

    /// Makes a token, which counts when this returns.
    ///
    /// # Errors
    /// `token-exists`, or when it could not be stored.
    async fn make(&self, wanted: Wanted) -> Result<TokenMade, Failure>;

    /// Removes a token, which counts no longer when this returns.
    ///
    /// # Errors
    /// `token-unknown`, or when the removal could not be stored.
    async fn revoke(&self, name: String) -> Result<(), Failure>;

    /// Gives the operator's token another text, which stands in its file when this returns.
    ///
    /// # Errors
    /// When it could not be stored.
    async fn rotate(&self) -> Result<(), Failure>;
}

/// Reads the configuration again.
///
/// # Errors
/// `configuration-rejected`, with what is wrong.
pub async fn reload(State(app): State<App>, who: Who) -> Result<Response, Problem> {
    unbounded(who)?;
    let told = app.admin.reload().await?;
    if told.rejected.is_empty() {
        return Ok(ok(&to_json(&told)?));
    }
    let message =
        format!("{} faults; the configuration before stays in force", told.rejected.len());
    let failure = Failure::new(Code::ConfigurationRejected, message);
    let rejected = ReloadRejected { problem: problem::document(&failure), told };
    Ok(answer::problem(failure.code, &rejected))
}

/// Switches an agent on.
///
/// # Errors
/// `agent-unknown`, `forbidden`; `configuration-rejected`, with what is wrong.
pub async fn enable(
    State(app): State<App>,
    who: Who,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    switch(&app, who, &id, true).await
}

/// Switches an agent off: it is listed and takes no work. What runs or waits goes on.
///
/// # Errors
/// `agent-unknown`, `forbidden`.
pub async fn disable(
    State(app): State<App>,
    who: Who,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    switch(&app, who, &id, false).await
}

async fn switch(app: &App, who: Who, id: &str, on: bool) -> Result<Response, Problem> {
    let agent = jsonrpc::known(app, id)?;
    who.may(Right::Admin, Some(&agent))?;
    match app.admin.switch(agent, on).await? {
        Ok(switched) => Ok(ok(&to_json(&switched)?)),
        Err(rejected) => {
            let message = format!("the agent cannot be switched on: {} faults", rejected.len());
            let failure = Failure::new(Code::ConfigurationRejected, message);
            let rejected = SwitchRejected { problem: problem::document(&failure), rejected };
            Ok(answer::problem(failure.code, &rejected))
        }
    }
}

/// The tokens that the caller may know of: those that allow no more than its own.
///
/// # Errors
/// `forbidden`.
pub async fn tokens(State(app): State<App>, who: Who) -> Result<Response, Problem> {
    let caller = who.may(Right::Admin, None)?;
    let known = app.admin.tokens().await?.into_iter();
    let tokens = known.filter(|(_, scope)| caller.scope.covers(scope)).map(|(entry, _)| entry);
    Ok(ok(&to_json(&TokenList { tokens: tokens.collect() })?))
}

/// Makes a token, and tells its text this once.
///
/// # Errors
/// `invalid-params`, `forbidden` for more than the caller's own token allows, or `token-exists`.
pub async fn make(State(app): State<App>, who: Who, request: Request) -> Result<Response, Problem> {
    let caller = who.may(Right::Admin, None)?;
    let order = order(&body::json(&app, request).await?)?;
    let wanted = wanted(&app, order)?;
    covers(&caller, &wanted.scope)?;
    if wanted.replaces {
        within(&app, &caller, &wanted.name).await?;
    }
    let made = app.admin.make(wanted).await?;
    Ok((axum::http::StatusCode::CREATED, ok(&to_json(&made)?)).into_response())
}

/// Removes a token that was made while the service ran.
///
/// # Errors
/// `token-unknown`, or `forbidden` for one that allows more than the caller's own.
pub async fn revoke(
    State(app): State<App>,
    who: Who,
    Segment(name): Segment,
) -> Result<Response, Problem> {
    let caller = who.may(Right::Admin, None)?;
    within(&app, &caller, &name).await?;
    app.admin.revoke(name).await?;
    Ok(ok(&to_json(&Done {})?))
}

/// Gives the operator's token another text.
///
/// # Errors
/// `forbidden`.
pub async fn rotate(State(app): State<App>, who: Who) -> Result<Response, Problem> {
    unbounded(who)?;
    app.admin.rotate().await?;
    Ok(ok(&to_json(&Done {})?))
}

/// The caller, if it is an administrator of all agents.
fn unbounded(who: Who) -> Result<Caller, Failure> {
    let caller = who.may(Right::Admin, None)?;
    if caller.scope.agents.is_none() { Ok(caller) } else { Err(beyond()) }
}

fn covers(caller: &Caller, scope: &Scope) -> Result<(), Failure> {
    if caller.scope.covers(scope) { Ok(()) } else { Err(beyond()) }
}

fn beyond() -> Failure {
    Failure::new(Code::Forbidden, "the token does not allow as much as this")
}

/// Sees that the token of a name, if there is one, allows no more than the caller's own.
async fn within(app: &App, caller: &Caller, name: &str) -> Result<(), Failure> {
    let known = app.admin.tokens().await?;
    known.iter().filter(|(entry, _)| entry.name == name).try_for_each(|(_, it)| covers(caller, it))
}

fn order(bytes: &[u8]) -> Result<TokenOrder, Failure> {
    let document: Value = serde_json::from_slice(bytes)
        .map_err(|error| Failure::new(Code::MalformedJson, format!("no JSON: {error}")))?;
    serde_json::from_value(document)
        .map_err(|error| Failure::new(Code::InvalidParams, format!("no token: {error}")))
}

/// Checks what is wanted as the configuration is checked.
fn wanted(app: &App, order: TokenOrder) -> Result<Wanted, Failure> {
    let TokenOrder { name, scopes, agents, expires, replace: replaces } = order;
    let wrong = |text: String| Failure::new(Code::InvalidParams, text);
    let is_plain = name.chars().all(|char| !char.is_control());
    if name.trim().is_empty() || name.chars().count() > 64 || !is_plain {
        return Err(wrong("`name` must have 1 to 64 characters".to_owned()));
    }
    if expires.is_some_and(|expires| expires <= app.gateway.now()) {
        return Err(wrong("`expires` must be in the future".to_owned()));
    }
    let mut rights = Vec::new();
    for word in scopes.unwrap_or_else(|| ["read", "run"].map(str::to_owned).to_vec()) {
        let right = Right::parse(&word);
        let known = "`scopes` takes `read`, `run`, `approve` and `admin`";
        let right = right.ok_or_else(|| wrong(known.to_owned()))?;
        if !rights.contains(&right) {
            rights.push(right);
        }
    }
    if rights.is_empty() {
        return Err(wrong("`scopes` must name one scope at least".to_owned()));
    }
    let agents = agents.map(|ids| ids.iter().map(|id| existing(app, id)).collect()).transpose()?;
    Ok(Wanted { name, scope: Scope { rights, agents }, expires, replaces })
}

fn existing(app: &App, id: &str) -> Result<AgentId, Failure> {
    let known = AgentId::new(id).ok().filter(|id| app.agents.contains_key(id));
    known.ok_or_else(|| Failure::new(Code::InvalidParams, "`agents` names one that is not there"))
}
