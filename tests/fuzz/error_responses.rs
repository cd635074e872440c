//! How a refusal must be told, whoever hears it.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use serde_json::Value;

use algonius_a2a::jsonrpc::{self, JsonRpcId};
use algonius_a2a::problem;
use algonius_a2a::v1::ProtocolVersion;

/// A refusal of what was sent has one of these codes, says something, and is the caller's fault in
/// every protocol.
pub(super) fn assert_valid_refusal(failure: &Failure, codes: &[Code]) {
    assert!(codes.contains(&failure.code), "{failure:?} is none of {codes:?}");
    assert!(!failure.message.is_empty(), "{failure:?} says nothing");
    for version in [ProtocolVersion::V0_3, ProtocolVersion::V1_0] {
        let status = problem::http_status(failure.code, version);
        assert!((400..500).contains(&status), "{failure:?} answers {status}");
    }
    let jsonrpc_code = problem::wire_codes(failure.code).jsonrpc;
    assert!((-32700..=-32600).contains(&jsonrpc_code), "{failure:?} answers {jsonrpc_code}");
}

/// The JSON-RPC answer to a refused call is one, and has its id.
pub(super) fn assert_error_response(id: &JsonRpcId, failure: &Failure, expected_id: &Value) {
    let answer = jsonrpc::failure_response(id.clone(), failure);
    assert_eq!(answer.get("id"), Some(expected_id));
    assert!(answer.get("result").is_none(), "{answer}");
    let jsonrpc_code = answer.pointer("/error/code").and_then(Value::as_i64);
    assert_eq!(jsonrpc_code, Some(problem::wire_codes(failure.code).jsonrpc));
}
