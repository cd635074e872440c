//! Bodies over HTTP, of both versions.

use algonius_a2a::A2aMethod;
use algonius_a2a::add_path_params;
use algonius_a2a::v0_3::rest::read::parse_body;
use algonius_actors::model::code::Code;
use serde_json::Value;

use super::dialect_readers::{ParsedRequest, REST_0_3, V1_0};
use super::error_responses::assert_valid_refusal;

/// The ids that the path has.
const TASK_ID: &str = "T1";
const PUSH_ID: &str = "P1";

/// What a path asks for, and what it says about the parameters.
const PATH_PARAMS_BY_METHOD: [(A2aMethod, &[(&str, &str)]); 9] = [
    (A2aMethod::Send, &[]),
    (A2aMethod::List, &[]),
    (A2aMethod::Get, &[("id", TASK_ID)]),
    (A2aMethod::Cancel, &[("id", TASK_ID)]),
    (A2aMethod::Subscribe, &[("id", TASK_ID)]),
    (A2aMethod::PushSet, &[("taskId", TASK_ID)]),
    (A2aMethod::PushList, &[("taskId", TASK_ID)]),
    (A2aMethod::PushGet, &[("taskId", TASK_ID), ("id", PUSH_ID)]),
    (A2aMethod::PushDelete, &[("taskId", TASK_ID), ("id", PUSH_ID)]),
];

/// Whatever the path, a body is taken or refused for a reason, and what is read is about what the
/// path names, never about what the body names.
pub fn check(bytes: &[u8]) {
    let body = match parse_body(bytes) {
        Ok(body) => body,
        Err(failure) => return assert_valid_refusal(&failure, &[Code::MalformedJson]),
    };
    for (method, path_params) in PATH_PARAMS_BY_METHOD {
        let params = match add_path_params(body.clone(), path_params) {
            Ok(params) => params,
            Err(failure) => {
                assert_valid_refusal(&failure, &[Code::InvalidParams]);
                continue;
            }
        };
        for readers in [REST_0_3, V1_0] {
            match readers.parse_and_assert_valid(method, &params) {
                Ok(request) => assert_ids_of_path(&request, &body),
                Err(failure) => assert_valid_refusal(&failure, &[Code::InvalidParams]),
            }
        }
    }
}

fn assert_ids_of_path(request: &ParsedRequest, body: &Value) {
    match request {
        ParsedRequest::Get(query) => assert_eq!(query.id, TASK_ID, "{body}"),
        ParsedRequest::CancelOrSubscribe(id) | ParsedRequest::PushList(id) => {
            assert_eq!(id, TASK_ID, "{body}");
        }
        ParsedRequest::PushSet(config) => {
            assert_eq!(config.task_id.as_deref(), Some(TASK_ID), "{body}");
        }
        ParsedRequest::PushQuery(query) => {
            assert_eq!(
                (query.task_id.as_str(), query.id.as_deref()),
                (TASK_ID, Some(PUSH_ID)),
                "{body}"
            );
        }
        ParsedRequest::Send(_) | ParsedRequest::List(_) | ParsedRequest::Card => {}
    }
}
