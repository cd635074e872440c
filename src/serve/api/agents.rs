//! The directory of agents.

use algonius_actors::model::agent::Access;
use algonius_actors::model::principal::Right;
use axum::extract::State;
use axum::response::Response;

use crate::serve::answer::{Problem, ok};
use crate::serve::auth::Who;
use crate::serve::status::to_json;
use crate::serve::{App, card};
use crate::wire::api::{AgentEntry, AgentList};

/// The directory: the agents that the caller may use.
///
/// # Errors
/// `forbidden`.
pub async fn list(State(app): State<App>, who: Who) -> Result<Response, Problem> {
    let caller = who.may(Right::Read, None)?;
    let seen = app.agents.values().filter(|spec| caller.scope.allows(Right::Read, Some(&spec.id)));
    let agents = seen.map(|spec| {
        let access = match spec.access {
            Access::ReadOnly => "read-only",
            Access::ReadWrite => "read-write",
        };
        AgentEntry {
            id: spec.id.to_string(),
            name: spec.name.clone(),
            description: spec.description.clone(),
            version: spec.version.clone(),
            enabled: spec.enabled,
            access: access.to_owned(),
            enforcement: spec.enforcement,
            isolation: spec.isolation,
            url: card::url(&app, spec),
            card: format!("{}/agents/{}/.well-known/agent-card.json", app.public_url, spec.id),
        }
    });
    Ok(ok(&to_json(&AgentList { agents: agents.collect() })?))
}
