//! Router of the service: the paths of A2A, all other paths from the table of operations, and the layers through
//! which each request passes.

mod error_format;
pub mod hot_swap;
mod instrumentation;
pub mod request_checks;

use std::sync::Arc;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use axum::Router;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{any, get, post};
use tower::ServiceExt;
use tower::layer::layer_fn;
use tracing::Instrument;

use super::a2a::transport_metadata::extension_uris;
use super::a2a::{card, extension, grpc, jsonrpc, rest};
use super::http::body_drain;
use super::http::connections::ClientConnection;
use super::http::response::ProblemBody;
use super::http::response_transfer;
use super::{AppState, api};
use error_format::ErrorFormat;
use instrumentation::MatchedEndpoint;
use instrumentation::{RequestObservation, RouteRecorder};

/// Builds the routes.
pub fn build_router(app: &AppState) -> Router {
    let routes = Router::new()
        .route("/agents/{agent}/v1", post(jsonrpc::handle_call))
        .route("/agents/{agent}/v1/", post(jsonrpc::handle_call))
        .route("/agents/{agent}/v1/jsonrpc", post(jsonrpc::handle_call))
        .route("/agents/{agent}/v1/{*rest}", any(rest::handle_call))
        .route("/.well-known/agent-card.json", get(card::default_agent_card))
        .route("/.well-known/agent-cards/{file}", get(card::agent_card_file))
        .route("/agents/{agent}/.well-known/agent-card.json", get(card::agent_card))
        .route("/agents/{agent}/v1/.well-known/agent-card.json", get(card::agent_card))
        .merge(api::routes())
        .fallback(unknown_path)
        // The default answer of the router is an empty body without a code.
        .method_not_allowed_fallback(async || {
            ProblemBody(Failure::new(
                Code::MethodNotAllowed,
                "this path does not accept this method",
            ))
        })
        .with_state(app.clone());
    routes.merge(grpc::routes(app)).layer(layer_fn(RouteRecorder))
}

/// Answers a request to an unknown path. A gRPC client expects a separate error for an unknown method.
async fn unknown_path(headers: HeaderMap) -> ProblemBody {
    if grpc::is_grpc_call(&headers) {
        return ProblemBody(Failure::new(Code::MethodUnknown, "there is no such method"));
    }
    ProblemBody(Failure::new(Code::PathUnknown, "there is nothing at this path"))
}

/// Answers a request: assigns an id, performs the request checks, routes, drains the body and counts.
pub async fn handle_request(
    app: &AppState,
    routes: Router,
    (mut request, connection): (Request, ClientConnection),
    credential_headers: &HeaderMap,
) -> Response {
    let observation = RequestObservation::start_and_set_trace_headers(app, request.headers_mut());
    let method = request.method().clone();
    let (version, transfers) = (request.version(), Arc::clone(connection.transfers()));
    // Copied before the request is moved into the router.
    let requested_extensions = extension_uris(request.headers());
    // Before the request checks, which consume the request and replace an alias by the usual path.
    let error_format = ErrorFormat::for_request(&request, &app.agents.aliases);
    let span = observation.span();
    let response_future = async {
        let (request, unread_body) = body_drain::track_unread_body(request, &connection);
        // The path is a copy: the original address would keep the connection buffer in memory while the request
        // waits.
        let (response, path) =
            match request_checks::check_and_rewrite_request(app, request, connection) {
                Ok(request) => {
                    let path = request.uri().path().to_owned();
                    let Ok(response) = routes.oneshot(request).await;
                    (response, Some(path))
                }
                Err(refusal) => (*refusal, None),
            };
        let bound_transfer = |response| {
            response_transfer::bound_transfer(response, version, &transfers, || {
                let (authenticator, now) =
                    (&app.access_control.authenticator, app.api.reader.now());
                let caller = authenticator.find_caller_for_any_agent(credential_headers, now);
                caller.map(|caller| caller.principal)
            })
        };
        let response = bound_transfer(error_format.render(response)).unwrap_or_else(|unsent| {
            let refusal = error_format.render(response_transfer::refusal_for(*unsent));
            // A refusal is short, so it always passes.
            bound_transfer(refusal).unwrap_or_else(|refusal| *refusal)
        });
        (body_drain::drain_or_close(unread_body, response).await, path)
    };
    let (mut response, path) = response_future.instrument(span).await;
    let endpoint = observation.finish_with_response(app, &method, path.as_deref(), &mut response);
    if let Some(spec) = endpoint
        .and_then(MatchedEndpoint::called_agent)
        .filter(|_| !requested_extensions.is_empty())
    {
        extension::add_extension_headers(
            &mut response,
            &requested_extensions,
            &extension::agent_extensions(&spec),
        );
    }
    response
}
