//! JSON-RPC messages, one per line.

use serde_json::{Map, Value, json};

use crate::agent_error::AgentError;
use crate::json_line::contains_any_json_string;
use crate::model::ids::RequestId;
use crate::model::step::ProtocolStep;

/// Error code of JSON-RPC for a method that the client does not offer.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// Error code of JSON-RPC for parameters that the client cannot read.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// Error code of JSON-RPC for an invalid request.
const INVALID_REQUEST: i64 = -32600;
/// Text of the error that rejects a reused id. A replay recognizes it.
const ID_IN_USE_MESSAGE: &str = "the id of the request is already in use";

/// Message of either side.
#[derive(Debug)]
pub(crate) enum RpcMessage {
    /// Request that expects a response.
    Request { id: RequestId, method: String, params: Value },
    /// Message without a response.
    Notification { method: String, params: Value },
    /// Response to a request.
    Response { id: RequestId, outcome: Result<Value, AgentError> },
}

/// Members by which a JSON-RPC message is recognized that cannot be read.
const RPC_MEMBER_NAMES: [&str; 3] = ["jsonrpc", "method", "result"];

/// Returns true if the text of an object that cannot be read may be a JSON-RPC message.
#[must_use]
pub fn may_be_rpc_message(text: &str) -> bool {
    contains_any_json_string(text, &RPC_MEMBER_NAMES)
}

/// Returns true if a JSON object is a JSON-RPC message, with or without the member `jsonrpc`.
#[must_use]
pub fn is_rpc_message(object: &Value) -> bool {
    let has = |name| object.get(name).is_some();
    has("jsonrpc")
        || has("id") && (has("method") || has("result") || has("error"))
        || has("method") && has("params")
}

impl RpcMessage {
    /// Reads a sent line; `None` if it is no message.
    pub(crate) fn parse_sent(line: &[u8]) -> Option<Self> {
        Self::from_json(serde_json::from_slice(line).ok()?).ok()
    }

    /// Reads a message. The error is a description of the fault.
    pub(crate) fn from_json(message: Value) -> Result<Self, &'static str> {
        let Value::Object(mut fields) = message else { return Err("message is not an object") };
        let id = match fields.get("id") {
            None | Some(Value::Null) => None,
            Some(id) => Some(RequestId::from_json(id).ok_or("id is no integer and no text")?),
        };
        let params = fields.remove("params").unwrap_or_default();
        match (id, fields.remove("method")) {
            (Some(id), Some(Value::String(method))) => Ok(Self::Request { id, method, params }),
            (None, Some(Value::String(method))) => Ok(Self::Notification { method, params }),
            (Some(id), None) => {
                let error = fields.get("error").filter(|error| !error.is_null());
                let result = || fields.get("result").cloned().unwrap_or_default();
                let outcome =
                    error.map_or_else(|| Ok(result()), |it| Err(AgentError::from_json(it)));
                Ok(Self::Response { id, outcome })
            }
            (None, None) => Err("message has neither an id nor a method"),
            (_, Some(_)) => Err("method is no text"),
        }
    }

    /// Returns whether a sent response rejects a request with a reused id.
    pub(crate) fn rejects_reused_id(outcome: &Result<Value, AgentError>) -> bool {
        outcome.as_ref().is_err_and(|error| error.message == ID_IN_USE_MESSAGE)
    }
}

/// Builder of messages, with the next free id and the number of sent lines.
#[derive(Debug)]
pub(crate) struct RpcWriter {
    /// True if messages have the member `jsonrpc`.
    has_jsonrpc_member: bool,
    next_id: i64,
    sent_line_count: u64,
}

impl RpcWriter {
    pub(crate) fn new(has_jsonrpc_member: bool) -> Self {
        Self { has_jsonrpc_member, next_id: 1, sent_line_count: 0 }
    }

    /// Returns the number of the latest sent line. The first line has number 1.
    pub(crate) fn last_line_number(&self) -> u64 {
        self.sent_line_count
    }

    /// Counts a replayed line, with the id of its request.
    pub(crate) fn record_replayed_line(&mut self, id: Option<i64>) {
        self.sent_line_count += 1;
        self.next_id = self.next_id.max(id.map_or(0, |id| id.saturating_add(1)));
    }

    /// Returns a request and its id.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> (i64, ProtocolStep) {
        let id = self.next_id;
        self.next_id += 1;
        (id, self.build_send_step(&json!({"id": id, "method": method, "params": params})))
    }

    pub(crate) fn notification(&mut self, method: &str, params: &Value) -> ProtocolStep {
        self.build_send_step(&json!({"method": method, "params": params}))
    }

    pub(crate) fn result_response(&mut self, id: &RequestId, result: &Value) -> ProtocolStep {
        self.build_send_step(&json!({"id": id.to_json(), "result": result}))
    }

    pub(crate) fn error_response(
        &mut self,
        id: &RequestId,
        code: i64,
        message: &str,
    ) -> ProtocolStep {
        self.build_send_step(
            &json!({"id": id.to_json(), "error": {"code": code, "message": message}}),
        )
    }

    /// Returns the error for a request whose id was used before.
    pub(crate) fn reused_id_response(&mut self, id: &RequestId) -> ProtocolStep {
        self.error_response(id, INVALID_REQUEST, ID_IN_USE_MESSAGE)
    }

    pub(crate) fn build_send_step(&mut self, message: &Value) -> ProtocolStep {
        self.sent_line_count += 1;
        let mut fields = Map::new();
        if self.has_jsonrpc_member {
            fields.insert("jsonrpc".to_owned(), "2.0".into());
        }
        fields.extend(message.as_object().cloned().unwrap_or_default());
        let mut line = Value::Object(fields).to_string().into_bytes();
        line.push(b'\n');
        ProtocolStep::Send(line)
    }
}
