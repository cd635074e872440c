//! Bodies of JSON-RPC, of both versions.

use algonius_a2a::Method;
use algonius_a2a::jsonrpc::{JsonRpcCall, RejectedCall, parse, success};
use algonius_a2a::v1_json as json;
use algonius_actors::model::code::Code;
use serde_json::Value;

use super::dialect_readers::{RPC_0_3, V1_0};
use super::error_responses::{check_answer, check_refusal};

/// A body is one call, or it is refused for a reason; the answer has its id in either case. A name
/// belongs to one version, and parameters that it cannot take are the caller's fault.
pub fn check(bytes: &[u8]) {
    let body: Option<Value> = serde_json::from_slice(bytes).ok();
    let (call, id) = (parse(bytes), wanted_id(body.as_ref()));
    let JsonRpcCall { id: given, method, params } = match call {
        Ok(call) => call,
        Err(RejectedCall { id: given, failure }) => {
            let code = if body.is_some() { Code::InvalidRequest } else { Code::MalformedJson };
            check_refusal(&failure, &[code]);
            return check_answer(&given, &failure, &id);
        }
    };
    let answer = success(given.clone(), Value::Null);
    assert_eq!(answer.get("id"), Some(&id));
    let (old, new) = (Method::of_0_3(&method), Method::of_1_0(&method));
    assert!(old.is_none() || new.is_none(), "both versions know `{method}`");
    let asked = match (old, new) {
        (Some(method), _) => RPC_0_3.read(method, &params),
        (None, Some(method)) => V1_0.read(method, &params),
        (None, None) => return,
    };
    if let Err(failure) = asked {
        check_refusal(&failure, &[Code::InvalidParams]);
        check_answer(&given, &failure, &id);
    }
    if let Err(failure) = json::read::tenant(&params) {
        check_refusal(&failure, &[Code::InvalidParams]);
    }
}

/// The id that an answer must have: that of the call, if it can be one.
fn wanted_id(body: Option<&Value>) -> Value {
    let id = body.filter(|body| body.is_object()).and_then(|body| body.get("id"));
    id.filter(|id| id.is_string() || id.is_number()).cloned().unwrap_or_default()
}
