//! Agent cards, at every place where clients look for them.

use algonius_actors::model::agent::{AgentSpec, Skill};
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use super::answer::{Problem, ok};
use super::segment::Segment;
use super::{App, jsonrpc};
use crate::wire::a2a::v0_3;
use crate::wire::a2a::v1::{Binding, Card, CardSecurity, CardSkill, Interface, Version};

/// The card of one agent.
///
/// # Errors
/// `agent-unknown`, or `unauthenticated` where cards are not public.
pub async fn of_agent(
    State(app): State<App>,
    Segment(agent): Segment,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    show(&app, &jsonrpc::known(&app, &agent)?, &headers)
}

/// The card of the default agent.
///
/// # Errors
/// `agent-unknown` when there is none, or `unauthenticated` where cards are not public.
pub async fn of_host(State(app): State<App>, headers: HeaderMap) -> Result<Response, Problem> {
    let none = || Failure::new(Code::AgentUnknown, "this service has no default agent");
    show(&app, app.default_agent.as_ref().ok_or_else(none)?, &headers)
}

fn show(app: &App, id: &AgentId, headers: &HeaderMap) -> Result<Response, Problem> {
    if !app.public_card {
        app.guard.admit(headers, app.gateway.now())?;
    }
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
