//! Requests to agents of other services and readers of their answers, in each version and JSON binding.

use algonius_actors::model::access::endpoint_config::ProtocolVersion;
use algonius_actors::model::agent::remote::RemoteBinding;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use serde_json::{Map, Value, json};

use super::v0_3::{self, rest};
use super::v1::{Message, Metadata, SendResponse, StreamEvent, Task};
use super::v1_json;

/// Call of an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientCall {
    /// Sends a message; the answer comes at once, before the end of the task.
    Send(OutgoingMessage),
    /// Sends a message and streams the events of its task.
    Stream(OutgoingMessage),
    /// Returns the task with this id.
    Get(String),
    /// Cancels the task with this id.
    Cancel(String),
}

/// Message with the fields of the request that carries it.
#[derive(Debug, Clone, PartialEq)]
pub struct OutgoingMessage {
    /// Message to send.
    pub message: Message,
    /// Media types that the caller can read; an empty list allows all.
    pub accepted_output_modes: Vec<String>,
    /// Metadata of the request.
    pub metadata: Metadata,
    /// URIs of the extensions that the caller requests, which a header names.
    pub requested_extensions: Vec<String>,
}

/// Request for a call, without the address of the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientRequest {
    /// Path and query that follow the URL of the interface; empty for JSON-RPC.
    pub path: String,
    /// Body of a POST request; `None` is a GET request.
    pub body: Option<Value>,
    /// Header that names the requested extensions, and its value; `None` if there are none.
    pub extensions_header: Option<(&'static str, String)>,
}

/// Error that an agent returned instead of a result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemoteError {
    /// Message of the agent, raw; empty if it gave none.
    pub message: String,
    /// True if the answer is not one of A2A; the message is the reason then.
    pub is_malformed_answer: bool,
    /// Number of the error: of JSON-RPC, or the HTTP status with HTTP+JSON.
    pub numeric_code: Option<i64>,
    /// Code of this project, if the agent belongs to a service of this project.
    pub code: Option<Code>,
}

impl RemoteError {
    /// Returns the error of an answer of something that does not speak JSON-RPC.
    fn for_malformed_answer() -> Self {
        let message = "it has neither `result` nor `error`".to_owned();
        Self { message, is_malformed_answer: true, ..Self::default() }
    }
}

/// Version and binding of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientDialect {
    /// Version of the protocol.
    pub version: ProtocolVersion,
    /// Binding of the calls.
    pub binding: RemoteBinding,
}

/// Number of the JSON-RPC error for an operation that the agent does not support.
const UNSUPPORTED_OPERATION: i64 = -32004;
/// Number of the JSON-RPC error for an unknown method.
const METHOD_NOT_FOUND: i64 = -32601;

impl RemoteError {
    /// Returns true if the agent does not offer the called operation.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(self.numeric_code, Some(UNSUPPORTED_OPERATION | METHOD_NOT_FOUND))
            || matches!(self.code, Some(Code::Unsupported | Code::MethodUnknown))
    }
}

impl ClientDialect {
    /// Returns the request for a call. Two calls with the same message have equal requests.
    #[must_use]
    pub fn build_request(self, call: ClientCall) -> ClientRequest {
        let extensions_header = self.extensions_header(&call);
        let (path, body) = match self.binding {
            RemoteBinding::JsonRpc => (String::new(), Some(self.json_rpc_body(call))),
            RemoteBinding::HttpJson => self.http_json_request(call),
        };
        ClientRequest { path, body, extensions_header }
    }

    /// Returns true if a message can refer to tasks.
    #[must_use]
    pub fn supports_task_references(self) -> bool {
        (self.version, self.binding) != (ProtocolVersion::V0_3, RemoteBinding::HttpJson)
    }

    /// Returns the header that names the extensions of a message.
    fn extensions_header(self, call: &ClientCall) -> Option<(&'static str, String)> {
        let (ClientCall::Send(message) | ClientCall::Stream(message)) = call else { return None };
        let name = match self.version {
            ProtocolVersion::V0_3 => "X-A2A-Extensions",
            ProtocolVersion::V1_0 => "A2A-Extensions",
        };
        let uris = message.requested_extensions.join(", ");
        (!uris.is_empty()).then_some((name, uris))
    }

    fn json_rpc_body(self, call: ClientCall) -> Value {
        let method_names = match self.version {
            ProtocolVersion::V0_3 => {
                ["message/send", "message/stream", "tasks/get", "tasks/cancel"]
            }
            ProtocolVersion::V1_0 => {
                ["SendMessage", "SendStreamingMessage", "GetTask", "CancelTask"]
            }
        };
        let [send, stream, get, cancel] = method_names;
        let (method, params) = match call {
            ClientCall::Send(message) => (send, self.send_params(message)),
            ClientCall::Stream(message) => (stream, self.stream_params(message)),
            ClientCall::Get(task_id) => (get, json!({"id": task_id})),
            ClientCall::Cancel(task_id) => (cancel, json!({"id": task_id})),
        };
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    }

    fn http_json_request(self, call: ClientCall) -> (String, Option<Value>) {
        let version_path = match self.version {
            // The URL on a card of 0.3 ends before the version, that of 1.0 includes it.
            ProtocolVersion::V0_3 => "/v1",
            ProtocolVersion::V1_0 => "",
        };
        let (path, body) = match call {
            ClientCall::Send(message) => {
                ("/message:send".to_owned(), Some(self.send_params(message)))
            }
            ClientCall::Stream(message) => {
                ("/message:stream".to_owned(), Some(self.stream_params(message)))
            }
            ClientCall::Get(task_id) => (format!("/tasks/{}", percent_encode(&task_id)), None),
            ClientCall::Cancel(task_id) => {
                (format!("/tasks/{}:cancel", percent_encode(&task_id)), Some(json!({})))
            }
        };
        (format!("{version_path}{path}"), body)
    }

    /// Returns the parameters of a message whose answer comes at once.
    fn send_params(self, message: OutgoingMessage) -> Value {
        // The versions say it the opposite way round: 0.3 names waiting, 1.0 names returning.
        let (name, value) = match self.version {
            ProtocolVersion::V0_3 => ("blocking", false),
            ProtocolVersion::V1_0 => ("returnImmediately", true),
        };
        self.message_params(message, Map::from_iter([(name.to_owned(), value.into())]))
    }

    /// Returns the parameters of a message whose task is streamed.
    fn stream_params(self, message: OutgoingMessage) -> Value {
        self.message_params(message, Map::new())
    }

    /// Returns the parameters of a message with a configuration, without the members that are empty.
    fn message_params(
        self,
        outgoing: OutgoingMessage,
        mut configuration: Map<String, Value>,
    ) -> Value {
        let OutgoingMessage { message, accepted_output_modes, metadata, requested_extensions: _ } =
            outgoing;
        if !accepted_output_modes.is_empty() {
            configuration.insert("acceptedOutputModes".to_owned(), accepted_output_modes.into());
        }
        let mut params = Map::from_iter([("message".to_owned(), self.message_json(message))]);
        let members = [("configuration", configuration), ("metadata", metadata)];
        let members = members.into_iter().filter(|(_, member)| !member.is_empty());
        params.extend(members.map(|(name, member)| (name.to_owned(), member.into())));
        params.into()
    }

    fn message_json(self, message: Message) -> Value {
        match (self.version, self.binding) {
            (ProtocolVersion::V1_0, _) => v1_json::write::message(message),
            (ProtocolVersion::V0_3, RemoteBinding::JsonRpc) => v0_3::write::message(message),
            (ProtocolVersion::V0_3, RemoteBinding::HttpJson) => rest::write::message(message),
        }
    }

    /// Returns the result of an answer, or of one event of a stream.
    ///
    /// # Errors
    /// The error of the agent.
    pub fn parse_result(self, answer: Value) -> Result<Value, RemoteError> {
        let error = find_error(&answer);
        match (self.binding, answer, error) {
            (_, _, Some(error)) => Err(error),
            (RemoteBinding::HttpJson, answer, None) => Ok(answer),
            (RemoteBinding::JsonRpc, Value::Object(mut answer), None) => {
                answer.remove("result").ok_or_else(RemoteError::for_malformed_answer)
            }
            (RemoteBinding::JsonRpc, _, None) => Err(RemoteError::for_malformed_answer()),
        }
    }

    /// Reads the result of [`ClientCall::Send`].
    ///
    /// # Errors
    /// `invalid-params`, naming the field.
    pub fn parse_send_response(self, result: Value) -> Result<SendResponse, Failure> {
        match (self.version, self.binding) {
            (ProtocolVersion::V1_0, _) => v1_json::read::send_response(result),
            (ProtocolVersion::V0_3, RemoteBinding::JsonRpc) => v0_3::read::send_response(result),
            (ProtocolVersion::V0_3, RemoteBinding::HttpJson) => rest::read::send_response(result),
        }
    }

    /// Reads the result of [`ClientCall::Get`] and [`ClientCall::Cancel`].
    ///
    /// # Errors
    /// `invalid-params`, naming the field.
    pub fn parse_task(self, result: Value) -> Result<Task, Failure> {
        match (self.version, self.binding) {
            (ProtocolVersion::V1_0, _) => v1_json::read::task(result),
            (ProtocolVersion::V0_3, RemoteBinding::JsonRpc) => v0_3::read::task(result),
            (ProtocolVersion::V0_3, RemoteBinding::HttpJson) => rest::read::task(result),
        }
    }

    /// Reads the result of one event of [`ClientCall::Stream`].
    ///
    /// # Errors
    /// `invalid-params`, naming the field.
    pub fn parse_event(self, result: Value) -> Result<StreamEvent, Failure> {
        match (self.version, self.binding) {
            (ProtocolVersion::V1_0, _) => v1_json::read::event(result),
            (ProtocolVersion::V0_3, RemoteBinding::JsonRpc) => v0_3::read::event(result),
            (ProtocolVersion::V0_3, RemoteBinding::HttpJson) => rest::read::event(result),
        }
    }
}

/// Returns the error of an answer in the forms of all versions and bindings: in the member `error`, or, over HTTP in
/// 0.3, beside a message alone.
#[must_use]
pub fn find_error(answer: &Value) -> Option<RemoteError> {
    // Servers of 0.3 over HTTP put code and message at the top, without `error`.
    let is_bare_error =
        answer.get("code").is_some() && answer.get("message").is_some_and(Value::is_string);
    let error = match answer.get("error") {
        // Some writers of JSON-RPC send `"error": null` beside a result.
        Some(Value::Null) | None if is_bare_error => answer,
        Some(Value::Null) | None => return None,
        Some(error) => error,
    };
    let detail = ["data", "details"].into_iter().find_map(|name| error.get(name)?.get(0));
    // A service of this project adds its code in the details; other services have numbers only.
    let code_name = detail.and_then(|detail| detail.pointer("/metadata/code"));
    let code_name = code_name.or_else(|| error.get("code")).and_then(Value::as_str);
    Some(RemoteError {
        // Many gateways have a text in place of the object.
        message: error.get("message").unwrap_or(error).as_str().unwrap_or_default().to_owned(),
        is_malformed_answer: false,
        numeric_code: error.get("code").and_then(Value::as_i64),
        code: code_name.and_then(Code::parse),
    })
}

/// Returns a task id as one segment of a path. Ids belong to the agent, and may have any characters.
fn percent_encode(id: &str) -> String {
    let mut text = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                text.push(char::from(byte));
            }
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::{A2aPart, Metadata, Role, SendMode};

    fn dialects() -> impl Iterator<Item = ClientDialect> {
        let all = |version: &ProtocolVersion| {
            let version = *version;
            RemoteBinding::ALL
                .iter()
                .map(move |binding| ClientDialect { version, binding: *binding })
        };
        ProtocolVersion::ALL.iter().flat_map(all)
    }

    fn hello_message() -> Message {
        Message {
            message_id: "m".to_owned(),
            context_id: Some("c".to_owned()),
            task_id: None,
            role: Role::User,
            parts: vec![A2aPart::text("hello")],
            metadata: Metadata::new(),
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        }
    }

    fn outgoing_message() -> OutgoingMessage {
        OutgoingMessage {
            message: hello_message(),
            accepted_output_modes: vec!["text/plain".to_owned()],
            metadata: Metadata::from_iter([("a".to_owned(), json!(1))]),
            requested_extensions: vec!["urn:a".to_owned(), "urn:b".to_owned()],
        }
    }

    #[test]
    fn the_service_reads_each_request_of_the_client() {
        for dialect in dialects() {
            let ClientRequest { path, body, extensions_header } =
                dialect.build_request(ClientCall::Send(outgoing_message()));
            let body = body.expect("a body");
            let parsed_request = match (dialect.version, dialect.binding) {
                (ProtocolVersion::V1_0, RemoteBinding::JsonRpc) => {
                    v1_json::read::send_request(body["params"].clone())
                }
                (ProtocolVersion::V1_0, RemoteBinding::HttpJson) => {
                    v1_json::read::send_request(body)
                }
                (ProtocolVersion::V0_3, RemoteBinding::JsonRpc) => {
                    v0_3::read::send_request(body["params"].clone())
                }
                (ProtocolVersion::V0_3, RemoteBinding::HttpJson) => rest::read::send_request(body),
            };
            let parsed_request = parsed_request.expect("a request");
            assert_eq!(parsed_request.send_mode, SendMode::NonBlocking, "{dialect:?}");
            let (message, accepted_output_modes) =
                (parsed_request.message, parsed_request.accepted_output_modes);
            let metadata = parsed_request.metadata;
            let (header, requested) = extensions_header.expect("a header");
            assert!(header.ends_with("A2A-Extensions"), "{header}");
            let requested_extensions = requested.split(", ").map(str::to_owned).collect();
            let parsed_message =
                OutgoingMessage { message, accepted_output_modes, metadata, requested_extensions };
            assert_eq!(parsed_message, outgoing_message(), "{dialect:?}");
            assert_eq!(path.is_empty(), dialect.binding == RemoteBinding::JsonRpc);
        }
    }

    #[test]
    fn an_id_is_escaped_in_its_path_segment() {
        let (version, binding) = (ProtocolVersion::V1_0, RemoteBinding::HttpJson);
        let dialect = ClientDialect { version, binding };
        let path = dialect.build_request(ClientCall::Cancel("../a b?é".to_owned())).path;
        assert_eq!(path, "/tasks/..%2Fa%20b%3F%C3%A9:cancel");
    }

    #[test]
    fn an_error_is_found_in_every_error_format() {
        let found = |answer: Value| {
            let error = find_error(&answer).expect("an error");
            (error.message, error.numeric_code, error.code)
        };
        let rpc = json!({"error": {"code": -32004, "message": "no", "data":
            [{"metadata": {"code": "operation-unsupported"}}]}});
        assert_eq!(found(rpc), ("no".to_owned(), Some(-32004), Some(Code::Unsupported)));
        let http = json!({"error": {"code": 400, "message": "no", "details":
            [{"metadata": {"code": "queue-full"}}]}});
        assert_eq!(found(http), ("no".to_owned(), Some(400), Some(Code::QueueFull)));
        let bare_error = json!({"code": "not-there", "message": "no"});
        assert_eq!(found(bare_error), ("no".to_owned(), None, None));
        assert_eq!(find_error(&json!({"result": {}})), None);
    }
}
