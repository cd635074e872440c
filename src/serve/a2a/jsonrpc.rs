//! A2A over JSON-RPC, both versions: `POST /agents/<id>/v1`.

use algonius_a2a::A2aMethod;
use algonius_a2a::jsonrpc::{
    JsonRpcCall, JsonRpcId, RejectedCall, failure_response, parse_call, success_response,
};
use algonius_a2a::problem;
use algonius_actors::model::access::endpoint_config::{Binding, ProtocolVersion};
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::dispatch::{OperationRequest, OperationResponse, RequestDialect, perform_operation};
use super::transport_metadata::TransportMetadata;
use super::{sse, version};
use crate::serve::AppState;
use crate::serve::auth::caller::AuthenticatedCaller;
use crate::serve::http::path_param::PathParam;
use crate::serve::http::{body, response};

/// Answers one call. Authentication precedes every other inspection of the request.
pub async fn handle_call(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(agent): PathParam,
    request: Request,
) -> Response {
    // All that the headers tell is read before the body consumes the request.
    let requested_version = version::requested_version(&request);
    let metadata = TransportMetadata::from_headers(request.headers());
    let accepts_event_stream = sse::accepts_event_stream(request.headers());
    let response_version = version::response_version(&request);
    // The bytes are dropped as soon as they are parsed: a waiting request would otherwise keep them in memory,
    // together with the connection buffer that contains them.
    let call = match body::read_json_bytes(&app, request).await {
        Ok(bytes) => parse_call(&bytes),
        Err(refusal) => return error_response(JsonRpcId::NULL, &refusal, true),
    };
    let JsonRpcCall { id, method, params } = match call {
        Ok(call) => call,
        Err(RejectedCall { id, failure }) => return error_response(id, &failure, false),
    };
    let (dialect, a2a_method) = match resolve_method(&method, response_version) {
        Ok(resolved) => resolved,
        Err(refusal) => return error_response(id, &refusal, false),
    };
    let operation_request = metadata.map(|metadata| OperationRequest {
        a2a_method,
        dialect,
        binding: Binding::JsonRpc,
        params,
        metadata,
    });
    match perform_call(&app, caller, &agent, requested_version, operation_request).await {
        Ok(OperationResponse::Complete(result)) => response::streaming_json_response(
            "application/json",
            StatusCode::OK,
            success_response(id, result),
        ),
        Ok(OperationResponse::Stream(events)) => {
            // Each event repeats the id of the call, and so does the failure that may end the stream.
            let (event_id, failure_id) = (id.clone(), id);
            let write_event =
                move |event| success_response(event_id.clone(), dialect.write_event(event));
            let write_failure =
                move |refusal: &Failure| failure_response(failure_id.clone(), refusal);
            sse::stream_events(events, write_event, write_failure)
        }
        // A client of 0.3 that requested events reads nothing else; a client of 1.0 expects a plain response.
        Err(refusal)
            if accepts_event_stream
                && a2a_method.is_streamed()
                && dialect == RequestDialect::Rpc0_3 =>
        {
            sse::single_event_response(&failure_response(id, &refusal))
        }
        Err(refusal) => error_response(id, &refusal, false),
    }
}

async fn perform_call(
    app: &AppState,
    caller: AuthenticatedCaller,
    agent: &str,
    requested_version: Result<ProtocolVersion, Failure>,
    operation_request: Result<OperationRequest, Failure>,
) -> Result<OperationResponse, Failure> {
    // Only now: an error must carry the id of its call, which is known after the body was parsed.
    requested_version?;
    perform_operation(app, caller, &app.agents.resolve_id(agent)?, operation_request?).await
}

/// Returns the dialect and operation of a method. The method name determines the version; an unknown name is refused
/// in the version of the caller.
fn resolve_method(
    method: &str,
    version: ProtocolVersion,
) -> Result<(RequestDialect, A2aMethod), Failure> {
    if let Some(a2a_method) = A2aMethod::from_name_1_0(method) {
        return Ok((RequestDialect::V1_0, a2a_method));
    }
    if let Some(a2a_method) = A2aMethod::from_name_0_3(method) {
        return Ok((RequestDialect::Rpc0_3, a2a_method));
    }
    let message = format!("there is no such method in A2A {}", version.as_str());
    Err(Failure::new(Code::MethodUnknown, message))
}

/// Creates a JSON-RPC error. Its HTTP status is 200, except if the body was not received, or if the state of the
/// service is the cause, so that a reverse proxy can react to it.
fn error_response(id: JsonRpcId, failure: &Failure, is_transport_error: bool) -> Response {
    let uses_http_status = is_transport_error || problem::is_service_unavailable(failure.code);
    let status =
        if uses_http_status { response::http_status(failure.code) } else { StatusCode::OK };
    let body = failure_response(id, failure);
    response::add_failure_headers(
        response::json_response("application/json", status, &body),
        failure,
    )
}
