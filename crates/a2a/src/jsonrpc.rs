//! The JSON-RPC 2.0 envelope, read by hand so that each fault has its own code and no input causes a server error.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use serde_json::{Map, Value, json};

use super::json_object::ObjectBuilder;
use super::json_object::document::parse_document;
use super::problem;

/// Id of a call: a text, a number or null. The answer repeats the id unchanged.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonRpcId(Value);

impl JsonRpcId {
    /// Id of an answer to a call without a readable id.
    pub const NULL: Self = Self(Value::Null);
}

/// JSON-RPC call.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonRpcCall {
    /// Id of the call.
    pub id: JsonRpcId,
    /// Name of the method.
    pub method: String,
    /// Parameters of the call; null if the call has none.
    pub params: Value,
}

/// Rejected call, with the id for the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct RejectedCall {
    /// Id of the call, or null if it could not be read.
    pub id: JsonRpcId,
    /// Reason for the rejection.
    pub failure: Failure,
}

/// Reads one call.
///
/// # Errors
/// `malformed-json` for what is not JSON, `invalid-request` for what is not one call.
pub fn parse_call(body: &[u8]) -> Result<JsonRpcCall, RejectedCall> {
    let rejected_call =
        |id, code, message: &str| RejectedCall { id, failure: Failure::new(code, message) };
    // Read as any JSON first: a derived reader could not distinguish malformed JSON from a call that is no call.
    let value =
        parse_document(body).map_err(|failure| RejectedCall { id: JsonRpcId::NULL, failure })?;
    let mut call = match value {
        Value::Object(call) => call,
        Value::Array(_) => {
            let message = "batches are not supported; send one call for each request";
            return Err(rejected_call(JsonRpcId::NULL, Code::InvalidRequest, message));
        }
        _ => {
            let message = "the body is not a JSON-RPC call";
            return Err(rejected_call(JsonRpcId::NULL, Code::InvalidRequest, message));
        }
    };
    // Before all other members, because every later error must carry the id.
    let id = take_id(&mut call)?;
    let invalid_request = |message: &str| rejected_call(id.clone(), Code::InvalidRequest, message);
    if call.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid_request("`jsonrpc` must be \"2.0\""));
    }
    let Some(Value::String(method)) = call.remove("method") else {
        return Err(invalid_request("`method` must be a text"));
    };
    match call.remove("params").unwrap_or_default() {
        // A list is valid JSON-RPC; the reader of the parameters refuses it with its own message.
        params @ (Value::Null | Value::Object(_) | Value::Array(_)) => {
            Ok(JsonRpcCall { id, method, params })
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Err(invalid_request("`params` must be an object"))
        }
    }
}

fn take_id(call: &mut Map<String, Value>) -> Result<JsonRpcId, RejectedCall> {
    match call.remove("id").unwrap_or_default() {
        id @ (Value::Null | Value::String(_) | Value::Number(_)) => Ok(JsonRpcId(id)),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(RejectedCall {
            id: JsonRpcId::NULL,
            failure: Failure::new(Code::InvalidRequest, "`id` must be a text, a number or null"),
        }),
    }
}

/// Writes the answer of a successful call.
#[must_use]
pub fn success_response(id: JsonRpcId, result: Value) -> Value {
    response_envelope(id).with_field("result", result).into()
}

/// Writes the answer of a failed call, which is the same in both versions.
#[must_use]
pub fn failure_response(id: JsonRpcId, failure: &Failure) -> Value {
    let error = json!({
        "code": problem::wire_codes(failure.code).jsonrpc,
        "message": failure.message,
        "data": problem::json_rpc_error_data(failure),
    });
    response_envelope(id).with_field("error", error).into()
}

/// Creates an answer without its result. The caller moves the result into the answer, because the result may be
/// large.
fn response_envelope(JsonRpcId(id): JsonRpcId) -> ObjectBuilder {
    ObjectBuilder::from_field("jsonrpc", "2.0").with_field("id", id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rejected_id_and_code(body: &str) -> (Value, i64) {
        let rejected_call = parse_call(body.as_bytes()).expect_err(body);
        (rejected_call.id.0, problem::wire_codes(rejected_call.failure.code).jsonrpc)
    }

    #[test]
    fn each_fault_of_a_json_rpc_request_has_its_code_and_id() {
        for (body, id, code) in [
            ("", json!(null), -32700),
            ("{", json!(null), -32700),
            ("{} {}", json!(null), -32700),
            ("\u{feff}{}", json!(null), -32700),
            ("[]", json!(null), -32600),
            ("5", json!(null), -32600),
            ("{}", json!(null), -32600),
            (r#"{"jsonrpc":"1.0","id":7,"method":"m"}"#, json!(7), -32600),
            (r#"{"jsonrpc":"2.0","id":"a"}"#, json!("a"), -32600),
            (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, json!(null), -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, json!(1), -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":5}"#, json!(1), -32600),
        ] {
            assert_eq!(rejected_id_and_code(body), (id, code), "{body}");
        }
    }

    #[test]
    fn deeply_nested_arrays_are_refused_as_malformed() {
        assert_eq!(rejected_id_and_code(&"[".repeat(100_000)).1, -32700);
    }

    #[test]
    fn a_call_keeps_its_id() {
        for id in [json!(null), json!(1), json!(1.5), json!("x"), json!(u64::MAX)] {
            let body = json!({"jsonrpc": "2.0", "id": id, "method": "m"}).to_string();
            let call = parse_call(body.as_bytes()).expect("a call");
            assert_eq!(success_response(call.id, json!(true))["id"], id);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            _ = parse_call(&body);
        }
    }
}
