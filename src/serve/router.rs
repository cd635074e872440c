//! Every path of the service: those of A2A here, all others by the table of operations.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{any, get, post};

use super::answer::Problem;
use super::{App, api, card, extension, gate, grpc, jsonrpc, observed, rest, unread};

/// The paths, behind the gate.
pub fn router(app: App) -> Router {
    let grpc = grpc::routes(&app);
    let agents = Router::new()
        .route("/agents/{agent}/v1", post(jsonrpc::call))
        .route("/agents/{agent}/v1/", post(jsonrpc::call))
        .route("/agents/{agent}/v1/{*rest}", any(rest::call))
        .route_layer(from_fn_with_state(app.clone(), extension::tell));
    let paths = Router::new()
        .route("/.well-known/agent-card.json", get(card::of_host))
        .route("/agents/{agent}/.well-known/agent-card.json", get(card::of_agent))
        .route("/agents/{agent}/v1/.well-known/agent-card.json", get(card::of_agent))
        .merge(agents)
        .merge(api::routes())
        .fallback(async || Problem(Failure::new(Code::PathUnknown, "there is nothing here")))
        .method_not_allowed_fallback(async || {
            Problem(Failure::new(Code::MethodNotAllowed, "this path takes another method"))
        })
        .with_state(app.clone())
        .merge(grpc)
        .layer(from_fn_with_state(app.clone(), observed::led));
    gate::before(app.clone(), paths)
        .layer(from_fn(unread::hear_out))
        .layer(from_fn_with_state(app, observed::observe))
}
