//! A2A over gRPC: both versions, on the same port as HTTP.
//!
//! The module `interceptor` authenticates a call before its message is read; the crate
//! `algonius_a2a` converts between the core shapes and the generated ones.

mod interceptor;
mod status;
mod v0_3;
mod v1;

use std::pin::Pin;

use algonius_a2a::grpc::proto::{a2a_v1, lf_a2a_v1};
use algonius_a2a::v1::StreamEvent;
use algonius_actors::model::access::endpoint_config::ProtocolVersion;
use algonius_actors::model::failure::Failure;
use axum::Router;
use axum::body::Body;
use axum::http::HeaderMap;
use axum::middleware::from_fn_with_state;
use axum::response::Response as HttpResponse;
use futures_util::stream::{Stream, StreamExt};
use tonic::service::Routes;
use tonic::{Response, Status};

use super::streaming::ResumableEvents;
use crate::serve::AppState;

/// Response of a unary method.
type GrpcResponse<T> = Result<Response<T>, Status>;

/// Response of a streaming method.
type GrpcStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Returns the routes of both services. They have no fallback, so that other paths are not affected.
pub(in crate::serve) fn routes(app: &AppState) -> Router {
    let v0_3_server =
        a2a_v1::a2a_service_server::A2aServiceServer::new(v0_3::GrpcServiceV03::new(app.clone()));
    let v1_server =
        lf_a2a_v1::a2a_service_server::A2aServiceServer::new(v1::GrpcServiceV1::new(app.clone()));
    // The default of `tonic` has a fallback of its own, which would answer all paths of HTTP.
    Routes::from(Router::new())
        .add_service(v0_3_server.max_decoding_message_size(app.body_limits.max_bytes))
        .add_service(v1_server.max_decoding_message_size(app.body_limits.max_bytes))
        .into_axum_router()
        // Only for matching paths: a layer around the fallback would answer all other requests as gRPC.
        .route_layer(from_fn_with_state(app.clone(), interceptor::intercept))
}

/// Returns a refusal before dispatch for a gRPC client; `None` for other clients.
pub(in crate::serve) fn refusal_response(
    headers: &HeaderMap,
    failure: &Failure,
) -> Option<HttpResponse> {
    is_grpc_call(headers).then(|| status::v1_status(failure).into_http::<Body>())
}

/// True if a request is a gRPC call, by its media type.
pub(in crate::serve) fn is_grpc_call(headers: &HeaderMap) -> bool {
    interceptor::is_grpc_call(headers)
}

/// Returns the version of the service that a path belongs to; 1.0 for a path of neither.
pub(in crate::serve) fn version_of(path: &str) -> ProtocolVersion {
    let is_v0_3 = path.starts_with(concat!("/", "a2a.v1.A2AService", "/"));
    if is_v0_3 { ProtocolVersion::V0_3 } else { ProtocolVersion::V1_0 }
}

/// Returns a refusal as the response of a call of this version.
pub(in crate::serve) fn status_response(
    failure: &Failure,
    version: ProtocolVersion,
) -> HttpResponse {
    let status = match version {
        ProtocolVersion::V0_3 => status::v0_3_status(failure),
        ProtocolVersion::V1_0 => status::v1_status(failure),
    };
    status.into_http::<Body>()
}

/// Function that converts a failure into a status of one version.
type StatusMapper = fn(&Failure) -> Status;

/// Ends a call: a failure becomes a status.
async fn to_grpc_response<T>(
    to_status: StatusMapper,
    operation: impl Future<Output = Result<T, Failure>>,
) -> GrpcResponse<T> {
    operation.await.map(Response::new).map_err(|failure| to_status(&failure))
}

/// Writes events in the form of a version.
fn to_grpc_stream<T: 'static>(
    to_status: StatusMapper,
    events: ResumableEvents,
    write: fn(StreamEvent) -> Result<T, Failure>,
) -> GrpcStream<T> {
    let messages = events.map(move |event| {
        let event = event.and_then(|(_, event)| write(event));
        event.map_err(|failure| to_status(&failure))
    });
    Box::pin(messages)
}
