//! A2A over gRPC: both versions, on the port of everything else.
//!
//! A call is let in by `arrival` before its message is read; the rest is conversions between the
//! core shapes and the generated ones, which cover every case by hand.

mod arrival;
pub mod proto;
mod status;
mod v0_3;
mod v1;
mod value;

#[cfg(test)]
mod tests;

use std::pin::Pin;

use algonius_actors::model::failure::Failure;
use axum::Router;
use axum::body::Body;
use axum::http::HeaderMap;
use axum::middleware::from_fn_with_state;
use axum::response::Response as HttpResponse;
use futures_util::stream::{Stream, StreamExt};
use tonic::service::Routes;
use tonic::{Response, Status};

use super::App;
use super::a2a::Events;
use crate::wire::a2a::v1::StreamEvent;
use proto::{a2a_v1, lf_a2a_v1};

/// What a method answers with.
type Answer<T> = Result<Response<T>, Status>;

/// What a method that streams answers with.
type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The paths of both services. They have no fallback: other paths stay what they are.
pub(super) fn routes(app: &App) -> Router {
    let old = a2a_v1::a2a_service_server::A2aServiceServer::new(v0_3::Service::new(app.clone()));
    let new = lf_a2a_v1::a2a_service_server::A2aServiceServer::new(v1::Service::new(app.clone()));
    Routes::from(Router::new())
        .add_service(old.max_decoding_message_size(app.max_body))
        .add_service(new.max_decoding_message_size(app.max_body))
        .into_axum_router()
        .route_layer(from_fn_with_state(app.clone(), arrival::admit))
}

/// A refusal before a call is looked at, for whoever speaks gRPC; nothing for others.
pub(super) fn refused(headers: &HeaderMap, failure: &Failure) -> Option<HttpResponse> {
    arrival::says_grpc(headers).then(|| status::of(failure).into_http::<Body>())
}

/// How a version tells failures.
type Tell = fn(&Failure) -> Status;

/// Ends a call: a failure becomes a status.
async fn settle<T>(tell: Tell, work: impl Future<Output = Result<T, Failure>>) -> Answer<T> {
    work.await.map(Response::new).map_err(|failure| tell(&failure))
}

/// Events in the words of a version.
fn stream<T: 'static>(
    tell: Tell,
    events: Events,
    write: fn(StreamEvent) -> Result<T, Failure>,
) -> Answers<T> {
    let written = events.map(move |event| {
        let event = event.and_then(|(_, event)| write(event));
        event.map_err(|failure| tell(&failure))
    });
    Box::pin(written)
}
