//! The living tree, for those who may look.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::principal::Right;
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use super::answer::{Problem, ok};
use super::auth::Who;
use super::segment::Segment;
use super::{App, jsonrpc};
use crate::wire::api::ServiceStatus;

/// Says that the service answers. Open to everybody, and tells nothing else.
pub async fn health() -> Response {
    ok(&json!({"status": "ok"}))
}

/// The whole tree; agents outside the token's scope are left out.
///
/// # Errors
/// `forbidden`.
pub async fn tree(State(app): State<App>, who: Who) -> Result<Response, Problem> {
    let caller = who.may(Right::Read, None)?;
    let mut tree = app.gateway.status().await;
    tree.agents.retain(|agent| caller.scope.allows(Right::Read, Some(&agent.id)));
    let status = ServiceStatus { version: env!("CARGO_PKG_VERSION").to_owned(), tree };
    Ok(ok(&to_json(&status)?))
}

/// One agent of the tree.
///
/// # Errors
/// `agent-unknown` or `forbidden`.
pub async fn agent(
    State(app): State<App>,
    who: Who,
    Segment(agent): Segment,
) -> Result<Response, Problem> {
    let id = jsonrpc::known(&app, &agent)?;
    who.may(Right::Read, Some(&id))?;
    let tree = app.gateway.status().await;
    let status = tree.agents.iter().find(|agent| agent.id == id);
    let none = || Failure::new(Code::AgentUnknown, "there is no such agent");
    Ok(ok(&to_json(status.ok_or_else(none)?)?))
}

/// A shape as JSON.
///
/// # Errors
/// `internal`, for a shape that JSON cannot hold.
pub fn to_json(shape: &impl serde::Serialize) -> Result<Value, Failure> {
    serde_json::to_value(shape).map_err(|error| {
        tracing::error!(%error, "answer cannot be written");
        Failure::new(Code::Internal, "the answer could not be written")
    })
}
