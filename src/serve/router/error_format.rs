//! Refusals before dispatch in the format of the path by which the request came: a JSON-RPC error on JSON-RPC,
//! `google.rpc.Status` over HTTP+JSON of 1.0 and the like of 0.3, a status of gRPC, and RFC 9457 elsewhere.
//!
//! The code that refuses a request (an extractor, the request checks, the router) need not know the path: it returns a
//! [`ProblemBody`](crate::serve::http::response::ProblemBody), which keeps its failure in the response, and
//! [`ErrorFormat::render`] writes the body at the very end.

use algonius_a2a::jsonrpc::{self, JsonRpcId};
use algonius_a2a::problem;
use algonius_actors::model::access::endpoint_config::ProtocolVersion;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use serde_json::Value;

use crate::serve::a2a::rest::media;
use crate::serve::a2a::{grpc, version};
use crate::serve::agent_directory::{PathAliases, strip_alias};
use crate::serve::http::response::{FailureExtension, to_json_text};

/// Prefix of the paths of agents.
const AGENTS_PATH: &str = "/agents/";

/// Format of errors that the client of a path reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorFormat {
    /// Problem document of RFC 9457.
    Problem,
    /// JSON-RPC error, which is the same in both versions.
    JsonRpc,
    /// Body of an HTTP+JSON error of this version, in this media type.
    Rest(ProtocolVersion, &'static str),
    /// Status of gRPC.
    Grpc(ProtocolVersion),
}

impl ErrorFormat {
    /// Returns the error format for a request.
    pub(super) fn for_request(request: &Request, aliases: &PathAliases) -> Self {
        let path = request.uri().path();
        // Before the path: a client of gRPC that calls a wrong path still reads statuses of gRPC only.
        if grpc::is_grpc_call(request.headers()) {
            return Self::Grpc(grpc::version_of(path));
        }
        let subpath_of_agent = match strip_alias(path, aliases) {
            Some((subpath, _)) => subpath.strip_prefix('/'),
            None => {
                path.strip_prefix(AGENTS_PATH).and_then(|subpath| Some(subpath.split_once('/')?.1))
            }
        };
        match subpath_of_agent {
            Some("v1" | "v1/" | "v1/jsonrpc") => Self::JsonRpc,
            Some(subpath) if is_rest_operation_path(subpath) => Self::Rest(
                version::response_version(request),
                media::error_media_type(request.headers()),
            ),
            _ => Self::Problem,
        }
    }

    /// Writes the body of a refusal in this format. Its status and its other headers stay; any other response
    /// stays as it is.
    pub(super) fn render(self, mut response: Response) -> Response {
        let Some(FailureExtension(failure)) = response.extensions_mut().remove() else {
            return response;
        };
        let (media_type, body) = match self {
            Self::Problem => return response,
            Self::Grpc(version) => return grpc::status_response(&failure, version),
            Self::JsonRpc => (media::JSON, jsonrpc::failure_response(JsonRpcId::NULL, &failure)),
            Self::Rest(version, media_type) => {
                let status = response.status().as_u16();
                (media_type, problem::rest_error_body(&failure, version, status))
            }
        };
        replace_body(response, media_type, &body)
    }
}

/// Returns true if the rest of a path below an agent belongs to A2A over HTTP+JSON; cards use the default format.
fn is_rest_operation_path(subpath: &str) -> bool {
    subpath.strip_prefix("v1/").is_some_and(|subpath| !subpath.starts_with(".well-known/"))
}

fn replace_body(mut response: Response, media_type: &'static str, body: &Value) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    // The length was that of the document that is replaced.
    headers.remove(header::CONTENT_LENGTH);
    *response.body_mut() = Body::from(to_json_text(body));
    response
}

#[cfg(test)]
mod tests {
    use algonius_actors::model::code::Code;
    use algonius_actors::model::failure::Failure;
    use algonius_actors::model::id::AgentId;
    use axum::http::StatusCode;
    use axum::response::IntoResponse;

    use super::*;
    use crate::serve::http::response::{EarlyRefusal, ProblemBody};

    fn error_format_of(path: &str, headers: &[(&'static str, &str)]) -> ErrorFormat {
        let aliases =
            PathAliases::from([("/bots/x".to_owned(), AgentId::new("x").expect("an id"))]);
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        ErrorFormat::for_request(&request.body(Body::empty()).expect("a request"), &aliases)
    }

    #[test]
    fn the_path_and_version_select_the_error_format() {
        let (old, new) = ([("a2a-version", "0.3")], [("a2a-version", "1.0")]);
        let rest_format = |version| ErrorFormat::Rest(version, media::JSON);
        for (path, headers, expected) in [
            ("/agents/x/v1", &[][..], ErrorFormat::JsonRpc),
            ("/agents/x/v1/", &new[..], ErrorFormat::JsonRpc),
            ("/bots/x/v1", &[], ErrorFormat::JsonRpc),
            ("/agents/x/v1/jsonrpc", &new, ErrorFormat::JsonRpc),
            ("/agents/x/v1/message:send", &[], rest_format(ProtocolVersion::V0_3)),
            ("/agents/x/v1/tasks/1", &old, rest_format(ProtocolVersion::V0_3)),
            ("/agents/x/v1/tasks/1", &new, rest_format(ProtocolVersion::V1_0)),
            ("/agents/x/v1/tasks?a2a-version=1.0", &[], rest_format(ProtocolVersion::V1_0)),
            ("/bots/x/v1/nonsense", &new, rest_format(ProtocolVersion::V1_0)),
            ("/agents/x/v1/tasks", &[("a2a-version", "9.9")], rest_format(ProtocolVersion::V1_0)),
            ("/agents/x/v1/.well-known/agent-card.json", &new, ErrorFormat::Problem),
            ("/agents/x/.well-known/agent-card.json", &new, ErrorFormat::Problem),
            ("/agents/x/v10", &[], ErrorFormat::Problem),
            ("/agents/x", &[], ErrorFormat::Problem),
            ("/bots/xy/v1", &[], ErrorFormat::Problem),
            ("/api/v1/agents", &new, ErrorFormat::Problem),
            ("/status", &[], ErrorFormat::Problem),
        ] {
            assert_eq!(error_format_of(path, headers), expected, "{path} {headers:?}");
        }
        let grpc = [("content-type", "application/grpc+proto")];
        let old = "/a2a.v1.A2AService/SendMessage";
        assert_eq!(error_format_of(old, &grpc), ErrorFormat::Grpc(ProtocolVersion::V0_3));
        let new = "/lf.a2a.v1.A2AService/SendMessage";
        assert_eq!(error_format_of(new, &grpc), ErrorFormat::Grpc(ProtocolVersion::V1_0));
        let headers = [("a2a-version", "1.0"), ("accept", media::A2A_JSON)];
        let expected = ErrorFormat::Rest(ProtocolVersion::V1_0, media::A2A_JSON);
        assert_eq!(error_format_of("/agents/x/v1/tasks", &headers), expected);
    }

    async fn body(response: Response) -> Value {
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await;
        serde_json::from_slice(&bytes.expect("a body")).expect("JSON")
    }

    /// Each code that can refuse a request before dispatch, in each format: status and code of the body agree, and
    /// the headers stay.
    #[tokio::test]
    async fn status_and_code_agree_in_every_error_format() {
        for code in Code::ALL.iter().copied() {
            let refused = || {
                let failure = Failure::new(code, "it is so");
                let wait = Some(std::time::Duration::from_secs(7));
                EarlyRefusal { failure, wait }.into_response()
            };
            let problem_response = refused();
            let (status, wait) = (
                problem_response.status(),
                problem_response.headers()[header::RETRY_AFTER].clone(),
            );
            assert_eq!(status.as_u16(), problem::http_status_before_dispatch(code), "{code}");
            for version in [ProtocolVersion::V0_3, ProtocolVersion::V1_0] {
                let response = ErrorFormat::Rest(version, media::JSON).render(refused());
                assert_eq!(response.status(), status, "{code}");
                assert_eq!(response.headers()[header::RETRY_AFTER], wait, "{code}");
                assert_eq!(response.headers()[header::CONTENT_TYPE], media::JSON, "{code}");
                let document = body(response).await;
                assert_eq!(document["error"]["code"], status.as_u16(), "{code} {document}");
                let number = problem::wire_codes(code).jsonrpc;
                let expected = (version == ProtocolVersion::V0_3).then_some(number);
                assert_eq!(document["code"].as_i64(), expected, "{code} {document}");
            }
            let response = ErrorFormat::JsonRpc.render(refused());
            assert_eq!(
                (response.status(), &response.headers()[header::RETRY_AFTER]),
                (status, &wait)
            );
            let document = body(response).await;
            assert_eq!(document["error"]["code"], problem::wire_codes(code).jsonrpc, "{code}");
            assert!(document["id"].is_null() && document["error"]["data"].is_array(), "{document}");
            let (number, ..) = problem::wire_codes(code).grpc.wire_values();
            let response = ErrorFormat::Grpc(ProtocolVersion::V1_0).render(refused());
            assert_eq!(response.headers()["grpc-status"], number.to_string(), "{code}");
            let document = body(ErrorFormat::Problem.render(refused())).await;
            assert_eq!(document["status"], status.as_u16(), "{code}");
        }
    }

    #[tokio::test]
    async fn a_response_without_a_refusal_is_unchanged() {
        let success = || (StatusCode::OK, "fine").into_response();
        let response = ErrorFormat::JsonRpc.render(success());
        assert_eq!(response.status(), StatusCode::OK);
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await;
        assert_eq!(&bytes.expect("a body")[..], b"fine");
        let problem = ProblemBody(Failure::new(Code::PathUnknown, "it is so")).into_response();
        assert_eq!(problem.headers()[header::CONTENT_TYPE], "application/problem+json");
    }
}
