//! A2A over HTTP+JSON, both versions on the same paths, such as `/agents/<id>/v1/message:send`. The header
//! `A2A-Version` selects the version.

pub mod media;

use std::collections::HashMap;

use algonius_a2a::v0_3::rest::read::parse_body as parse;
use algonius_a2a::{A2aMethod, add_path_params, problem};
use algonius_actors::model::access::endpoint_config::{Binding, ProtocolVersion};
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::Response;
use serde_json::{Map, Value};

use super::dispatch::{OperationRequest, OperationResponse, RequestDialect, perform_operation};
use super::transport_metadata::TransportMetadata;
use super::{envelope, sse, version};
use crate::serve::AppState;
use crate::serve::auth::caller::AuthenticatedCaller;
use crate::serve::http::path_param::AgentSubpath;
use crate::serve::http::{body, response};
use crate::wire::envelope::is_envelope;

/// Match of a path and a method, with the parameters from the path.
struct RouteMatch {
    a2a_method: A2aMethod,
    path_params: Vec<(&'static str, String)>,
}

/// Result of a call.
enum RestResponse {
    /// Answer of the protocol.
    Operation(OperationResponse),
    /// Answer to an envelope.
    Envelope(Response),
}

/// Answers a call to a path below `/agents/<id>/v1/`. Authentication precedes every other inspection of the request.
pub async fn handle_call(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    AgentSubpath { agent, subpath }: AgentSubpath,
    request: Request,
) -> Response {
    let (requested_version, version) =
        (version::requested_version(&request), version::response_version(&request));
    let dialect = match version {
        ProtocolVersion::V0_3 => RequestDialect::Rest0_3,
        ProtocolVersion::V1_0 => RequestDialect::V1_0,
    };
    let result_media_type = media::result_media_type(request.headers(), version);
    let error_media_type = media::error_media_type(request.headers());
    let has_non_json_content_type =
        request.headers().contains_key(header::CONTENT_TYPE) && !body::is_json_request(&request);
    match perform_call(&app, caller, (&agent, &subpath), (requested_version, dialect), request)
        .await
    {
        Ok(RestResponse::Envelope(response)) => response,
        Ok(RestResponse::Operation(OperationResponse::Complete(Value::Null))) => {
            // HTTP+JSON transports protobuf messages: an empty message is an empty object, not `null`.
            response::json_response(result_media_type, StatusCode::OK, &empty_object())
        }
        Ok(RestResponse::Operation(OperationResponse::Complete(result))) => {
            response::streaming_json_response(result_media_type, StatusCode::OK, result)
        }
        Ok(RestResponse::Operation(OperationResponse::Stream(events))) => {
            let write_failure = move |failure: &Failure| {
                problem::rest_error_body(
                    failure,
                    version,
                    problem::http_status(failure.code, version),
                )
            };
            sse::stream_events(events, move |event| dialect.write_event(event), write_failure)
        }
        // A fault for which HTTP itself has a status is reported with that status.
        Err(failure) if has_non_json_content_type && failure.code == Code::ContentType => {
            error_response(
                &failure,
                version,
                (problem::http_status_before_dispatch(failure.code), error_media_type),
            )
        }
        Err(failure) => error_response(
            &failure,
            version,
            (problem::http_status(failure.code, version), error_media_type),
        ),
    }
}

async fn perform_call(
    app: &AppState,
    caller: AuthenticatedCaller,
    (agent, subpath): (&str, &str),
    (requested_version, dialect): (Result<ProtocolVersion, Failure>, RequestDialect),
    request: Request,
) -> Result<RestResponse, Failure> {
    requested_version?;
    let agent = app.agents.resolve_id(agent)?;
    let RouteMatch { a2a_method, path_params: path_values } =
        match_route(request.method(), subpath)?;
    let metadata = TransportMetadata::from_headers(request.headers())?;
    let query_params = query_params(request.uri().query().unwrap_or_default());
    let params = match *request.method() {
        Method::POST | Method::PUT => parse(&body::read_json_bytes_or_empty(app, request).await?)?,
        _ => query_params,
    };
    if a2a_method == A2aMethod::Send && is_envelope(&params) {
        return Ok(RestResponse::Envelope(
            envelope::respond(app, caller, &agent, (params, metadata)).await,
        ));
    }
    let path_values: Vec<_> =
        path_values.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let params = add_path_params(params, &path_values)?;
    let operation_request =
        OperationRequest { a2a_method, dialect, binding: Binding::HttpJson, params, metadata };
    perform_operation(app, caller, &agent, operation_request).await.map(RestResponse::Operation)
}

fn match_route(method: &Method, subpath: &str) -> Result<RouteMatch, Failure> {
    let segments: Vec<_> = subpath.trim_end_matches('/').split('/').collect();
    let route = |a2a_method, path_params: &[(&'static str, &str)]| {
        let path_params =
            path_params.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Ok(RouteMatch { a2a_method, path_params })
    };
    match (method.as_str(), segments.as_slice()) {
        ("POST", ["message:send"]) => route(A2aMethod::Send, &[]),
        ("POST", ["message:stream"]) => route(A2aMethod::Stream, &[]),
        ("GET", ["tasks"]) => route(A2aMethod::List, &[]),
        ("GET", ["card" | "extendedAgentCard"]) => route(A2aMethod::ExtendedCard, &[]),
        // A colon belongs to the segment of the path, so the router cannot distinguish these operations.
        ("GET" | "POST", ["tasks", task]) => match (method.as_str(), task.split_once(':')) {
            ("GET", None) => route(A2aMethod::Get, &[("id", task)]),
            ("POST", Some((id, "cancel"))) => route(A2aMethod::Cancel, &[("id", id)]),
            (_, Some((id, "subscribe"))) => route(A2aMethod::Subscribe, &[("id", id)]),
            _ => Err(unknown_path()),
        },
        ("POST", ["tasks", id, "pushNotificationConfigs"]) => {
            route(A2aMethod::PushSet, &[("taskId", id)])
        }
        ("GET", ["tasks", id, "pushNotificationConfigs"]) => {
            route(A2aMethod::PushList, &[("taskId", id)])
        }
        ("GET", ["tasks", id, "pushNotificationConfigs", config]) => {
            route(A2aMethod::PushGet, &[("taskId", id), ("id", config)])
        }
        ("DELETE", ["tasks", id, "pushNotificationConfigs", config]) => {
            route(A2aMethod::PushDelete, &[("taskId", id), ("id", config)])
        }
        _ => Err(unknown_path()),
    }
}

fn unknown_path() -> Failure {
    Failure::new(Code::PathUnknown, "there is nothing at this path")
}

/// Converts a query into parameters: numbers and Booleans stay texts, which the dialects also read.
fn query_params(query: &str) -> Value {
    let pairs: HashMap<String, String> =
        axum::extract::Query::try_from_uri(&format!("/?{query}").parse().unwrap_or_default())
            .map(|axum::extract::Query(pairs)| pairs)
            .unwrap_or_default();
    // The version is a parameter of the request and not of the operation, which refuses unknown members.
    let parameters =
        pairs.into_iter().filter(|(name, _)| !name.eq_ignore_ascii_case("a2a-version"));
    Value::Object(parameters.map(|(name, text)| (name, Value::String(text))).collect::<Map<_, _>>())
}

fn empty_object() -> Value {
    Value::Object(Map::new())
}

fn error_response(
    failure: &Failure,
    version: ProtocolVersion,
    (status, media_type): (u16, &'static str),
) -> Response {
    let body = problem::rest_error_body(failure, version, status);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response::add_failure_headers(response::json_response(media_type, status, &body), failure)
}
