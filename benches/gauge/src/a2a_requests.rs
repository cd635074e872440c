//! Requests to the service, as bytes that are built before the measurement.

use std::rc::Rc;

use serde_json::{Value, json};

use crate::client::BenchResponse;
use crate::load::LoadRequest;
use crate::service::Service;
use crate::spawn::plain_text;

/// Placeholder of a request's number, with the same length.
pub const NUMBER_PLACEHOLDER: &str = "0000000000000000";

/// Header of clients of 1.0.
pub const VERSION_1_0_HEADER: &str = "a2a-version: 1.0\r\n";

/// Returns a function that builds the same request each time, except for its [`NUMBER_PLACEHOLDER`].
#[must_use]
pub fn request_builder(request: &str) -> Box<dyn Fn(u64) -> Vec<u8>> {
    let (before, after) = request.split_once(NUMBER_PLACEHOLDER).unwrap_or((request, ""));
    let (before, after) = (before.to_owned().into_bytes(), after.to_owned().into_bytes());
    let has_placeholder = request.contains(NUMBER_PLACEHOLDER);
    Box::new(move |number| {
        let number = if has_placeholder { format!("{number:016x}") } else { String::new() };
        [&before, number.as_bytes(), &after].concat()
    })
}

/// Returns the parameters of a message of 0.3 with a text of this many bytes.
#[must_use]
pub fn sized_message_params_0_3(bytes: usize) -> Value {
    let parts = json!([{"kind": "text", "text": plain_text(bytes)}]);
    json!({"message": {"kind": "message", "role": "user", "messageId": NUMBER_PLACEHOLDER, "parts": parts}})
}

/// Returns the parameters of a message of 1.0 with a text of this many bytes.
#[must_use]
pub fn sized_message_params_1_0(bytes: usize) -> Value {
    let parts = json!([{"text": plain_text(bytes)}]);
    json!({"message": {"messageId": NUMBER_PLACEHOLDER, "role": "ROLE_USER", "parts": parts}})
}

impl Service {
    /// Returns one call of 0.3 over JSON-RPC, as a request.
    #[must_use]
    pub fn json_rpc_request(&self, agent: &str, method: &str, params: &Value) -> String {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.build_request(&format!("POST /agents/{agent}/v1"), "", &call.to_string())
    }

    /// Returns requests that send a message over JSON-RPC, and wait for the answer.
    #[must_use]
    pub fn json_rpc_load_request(&self, agent: &str, bytes: usize) -> Rc<LoadRequest> {
        let build = request_builder(&self.json_rpc_request(
            agent,
            "message/send",
            &sized_message_params_0_3(bytes),
        ));
        Rc::new(LoadRequest { build, is_good: Box::new(is_completed) })
    }

    /// Returns requests that send a message over HTTP+JSON, in 1.0.
    #[must_use]
    pub fn rest_load_request(&self, agent: &str, bytes: usize) -> Rc<LoadRequest> {
        let body = sized_message_params_1_0(bytes).to_string();
        let request_line = format!("POST /agents/{agent}/v1/message:send");
        let build = request_builder(&self.build_request(&request_line, VERSION_1_0_HEADER, &body));
        let is_good =
            |answer: &BenchResponse<'_>| answer.is_ok_and_contains("\"TASK_STATE_COMPLETED\"");
        Rc::new(LoadRequest { build, is_good: Box::new(is_good) })
    }
}

/// Returns equal requests, for answers of at least this many bytes.
#[must_use]
pub fn repeated_request(request: &str, min_response_bytes: usize) -> Rc<LoadRequest> {
    let is_good = move |answer: &BenchResponse<'_>| {
        answer.status == 200 && answer.body.len() >= min_response_bytes
    };
    Rc::new(LoadRequest { build: request_builder(request), is_good: Box::new(is_good) })
}

/// Returns a request with a body and optional further headers, to a server without authentication.
#[must_use]
pub fn post_request(path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: bare\r\n{headers}content-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}

/// Returns true if the answer is a finished task of 0.3.
#[must_use]
pub fn is_completed(answer: &BenchResponse<'_>) -> bool {
    answer.is_ok_and_contains("\"state\":\"completed\"")
}
