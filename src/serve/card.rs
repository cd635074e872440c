//! Agent cards, at every place where clients look for them.

use algonius_actors::model::agent::{AgentSpec, Skill};
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;

use super::answer::{Problem, ok};
use super::segment::Segment;
use super::{App, jsonrpc};
use crate::wire::a2a::v0_3;
use crate::wire::a2a::v1::{Binding, Card, CardSecurity, CardSkill, Interface, Version};

/// Whoever may look at cards: everybody, or those with a token where cards are not public. Asked
/// for first, so that others do not learn which agents there are.
pub struct Onlooker;

impl FromRequestParts<App> for Onlooker {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        if !app.public_card {
            app.guard.admit(&parts.headers, app.gateway.now())?;
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
) -> Result<Response, Problem> {
    show(&app, &jsonrpc::known(&app, &agent)?)
}

/// The card of the default agent.
///
/// # Errors
/// `agent-unknown` when there is none.
pub async fn of_host(State(app): State<App>, _: Onlooker) -> Result<Response, Problem> {
    let none = || Failure::new(Code::AgentUnknown, "this service has no default agent");
    show(&app, app.default_agent.as_ref().ok_or_else(none)?)
}

fn show(app: &App, id: &AgentId) -> Result<Response, Problem> {
    let none = || Failure::new(Code::AgentUnknown, "there is no such agent");
    let spec = app.agents.get(id).ok_or_else(none)?;
    Ok(ok(&v0_3::card(&card(app, spec))))
}

fn card(app: &App, spec: &AgentSpec) -> Card {
    let skills = spec.skills.iter().map(|skill| {
        let Skill { id, name, description, tags } = skill.clone();
        CardSkill { id, name, description, tags }
    });
    let (binding, version) = (Binding::JsonRpc, Version::V0_3);
    Card {
        name: spec.name.clone(),
        description: spec.description.clone(),
        version: spec.version.clone(),
        interfaces: vec![Interface { url: url(app, &spec.id), binding, version, tenant: None }],
        streaming: false,
        push: false,
        extended: false,
        extensions: Vec::new(),
        input_modes: vec!["text/plain".to_owned(), "application/json".to_owned()],
        output_modes: vec!["text/plain".to_owned()],
        skills: skills.collect(),
        security: CardSecurity::Bearer,
    }
}

/// Where the JSON-RPC door of an agent is.
#[must_use]
pub fn url(app: &App, id: &AgentId) -> String {
    format!("{}/agents/{id}/v1", app.public_url)
}
