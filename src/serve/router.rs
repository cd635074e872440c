//! Every path of the service, on one page.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{any, delete, get, post};

use super::answer::Problem;
use super::{
    App, admin, api, card, extension, gate, grpc, jsonrpc, observed, rest, schedules, status,
};

/// The paths, behind the gate.
pub fn router(app: App) -> Router {
    let grpc = grpc::routes(&app);
    let agents = Router::new()
        .route("/agents/{agent}/v1", post(jsonrpc::call))
        .route("/agents/{agent}/v1/", post(jsonrpc::call))
        .route("/agents/{agent}/v1/{*rest}", any(rest::call))
        .route_layer(from_fn_with_state(app.clone(), extension::tell));
    let paths = Router::new()
        .route("/health", get(status::health))
        .route("/ready", get(status::ready))
        .route("/metrics", get(status::metrics))
        .route("/status", get(status::tree))
        .route("/status/agents/{agent}", get(status::agent))
        .route("/.well-known/agent-card.json", get(card::of_host))
        .route("/agents/{agent}/.well-known/agent-card.json", get(card::of_agent))
        .route("/agents/{agent}/v1/.well-known/agent-card.json", get(card::of_agent))
        .merge(agents)
        .route("/agents", get(api::agents::list))
        .route("/a2a/status", get(status::a2a))
        .merge(schedules::routes())
        .route("/api/v1/reload", post(admin::reload))
        .route("/api/v1/tokens", get(admin::tokens).post(admin::make))
        .route("/api/v1/tokens/{name}", delete(admin::revoke))
        .route("/api/v1/operator/rotate", post(admin::rotate))
        .merge(api::routes())
        .fallback(async || Problem(Failure::new(Code::PathUnknown, "there is nothing here")))
        .method_not_allowed_fallback(async || {
            Problem(Failure::new(Code::MethodNotAllowed, "this path takes another method"))
        })
        .with_state(app.clone())
        .merge(grpc)
        .layer(from_fn_with_state(app.clone(), observed::led));
    gate::before(app.clone(), paths).layer(from_fn_with_state(app, observed::observe))
}
