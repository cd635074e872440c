//! Bodies of JSON-RPC, of both versions.

use algonius_a2a::A2aMethod;
use algonius_a2a::json_object::document::parse_document;
use algonius_a2a::jsonrpc::{JsonRpcCall, RejectedCall, parse_call, success_response};
use algonius_a2a::v1_json as json;
use algonius_actors::model::code::Code;
use serde_json::Value;

use super::dialect_readers::{RPC_0_3, V1_0};
use super::error_responses::{assert_error_response, assert_valid_refusal};

/// A body is one call, or it is refused for a reason; the answer has its id in either case. A name
/// belongs to one version, and parameters that it cannot take are the caller's fault.
pub fn check(bytes: &[u8]) {
    let body: Option<Value> = parse_document(bytes).ok();
    let (call, expected_id) = (parse_call(bytes), id_of_call(body.as_ref()));
    let JsonRpcCall { id: actual_id, method, params } = match call {
        Ok(call) => call,
        Err(RejectedCall { id: actual_id, failure }) => {
            let code = if body.is_some() { Code::InvalidRequest } else { Code::MalformedJson };
            assert_valid_refusal(&failure, &[code]);
            return assert_error_response(&actual_id, &failure, &expected_id);
        }
    };
    let answer = success_response(actual_id.clone(), Value::Null);
    assert_eq!(answer.get("id"), Some(&expected_id));
    let (method_0_3, method_1_0) =
        (A2aMethod::from_name_0_3(&method), A2aMethod::from_name_1_0(&method));
    assert!(method_0_3.is_none() || method_1_0.is_none(), "both versions know `{method}`");
    let request = match (method_0_3, method_1_0) {
        (Some(method), _) => RPC_0_3.parse_and_assert_valid(method, &params),
        (None, Some(method)) => V1_0.parse_and_assert_valid(method, &params),
        (None, None) => return,
    };
    if let Err(failure) = request {
        assert_valid_refusal(&failure, &[Code::InvalidParams]);
        assert_error_response(&actual_id, &failure, &expected_id);
    }
    if let Err(failure) = json::read::tenant(&params) {
        assert_valid_refusal(&failure, &[Code::InvalidParams]);
    }
}

/// The id that an answer must have: that of the call, if it can be one.
fn id_of_call(body: Option<&Value>) -> Value {
    let id = body.filter(|body| body.is_object()).and_then(|body| body.get("id"));
    id.filter(|id| id.is_string() || id.is_number()).cloned().unwrap_or_default()
}
