//! Every path of the service: those of A2A here, all others by the table of operations; and what each
//! request goes through before it comes to one.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::{any, get, post};
use tower::ServiceExt;
use tower::layer::layer_fn;
use tracing::Instrument;

use super::answer::Problem;
use super::beside::extensions;
use super::observed::{Led, Observed};
use super::{App, api, card, extension, gate, grpc, jsonrpc, rest, unread};

/// The paths, behind the gate.
pub fn router(app: &App) -> Router {
    let paths = Router::new()
        .route("/agents/{agent}/v1", post(jsonrpc::call))
        .route("/agents/{agent}/v1/", post(jsonrpc::call))
        .route("/agents/{agent}/v1/{*rest}", any(rest::call))
        .route("/.well-known/agent-card.json", get(card::of_host))
        .route("/agents/{agent}/.well-known/agent-card.json", get(card::of_agent))
        .route("/agents/{agent}/v1/.well-known/agent-card.json", get(card::of_agent))
        .merge(api::routes())
        .fallback(async || Problem(Failure::new(Code::PathUnknown, "there is nothing here")))
        .method_not_allowed_fallback(async || {
            Problem(Failure::new(Code::MethodNotAllowed, "this path takes another method"))
        })
        .with_state(app.clone());
    paths.merge(grpc::routes(app)).layer(layer_fn(Led))
}

/// Answers a request: known by an id, heard out, let in by the gate, counted.
pub async fn answer(app: &App, paths: Router, mut request: Request) -> Response {
    let observed = Observed::begin(app, request.headers_mut());
    let method = request.method().clone();
    let wanted = extensions(request.headers());
    let span = observed.span();
    let answering = async {
        let (request, rest) = unread::lend(request);
        // The path is a copy: the address would keep the buffer of the connection while somebody waits.
        let (response, path) = match gate::pass(app, request).await {
            Ok(request) => {
                let path = request.uri().path().to_owned();
                let Ok(response) = paths.oneshot(request).await;
                (response, Some(path))
            }
            Err(refused) => (refused, None),
        };
        (unread::hear_out(rest, response).await, path)
    };
    let (mut response, path) = answering.instrument(span).await;
    let endpoint = observed.end(app, &method, path.as_deref(), &mut response);
    if let Some(endpoint) = endpoint.filter(|_| !wanted.is_empty()) {
        extension::tell(&endpoint, &wanted, &mut response);
    }
    response
}
