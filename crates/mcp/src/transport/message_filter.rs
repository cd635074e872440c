//! Decision which messages of a server reach the library.

use std::collections::HashSet;

use rmcp::RoleClient;
use rmcp::model::{ClientNotification, ClientRequest, JsonRpcMessage, RequestId};
use rmcp::service::TxJsonRpcMessage;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::sync::watch;

/// Greatest number of values in a message. A value needs up to 100 times as much memory as its text.
const MAX_MESSAGE_VALUES: usize = 100_000;

/// Code of JSON-RPC for a method that this side does not have.
const METHOD_NOT_FOUND: i32 = -32601;

/// Kind of a message from a server.
#[derive(Debug, PartialEq)]
pub(super) enum IncomingMessage {
    /// Answer to a pending request.
    Answer(RequestId),
    /// Error that names no request. During the start it belongs to the only one that is pending.
    ErrorWithoutId,
    /// Request of the server, with the answer to it.
    RequestWithResponse(Value),
    /// Message or text that this side does not use.
    Unused,
    /// Message with more values than permitted.
    TooComplex,
}

/// Ids of the pending requests.
#[derive(Default)]
pub(super) struct MessageFilter(watch::Sender<HashSet<String>>);

/// Parts of a message that decide on it.
#[derive(Deserialize)]
struct MessageHead {
    id: Option<RequestId>,
    method: Option<String>,
    error: Option<IgnoredAny>,
}

impl MessageFilter {
    /// Notes a request that is sent, or that it is cancelled.
    pub(super) fn track_sent(&self, message: &TxJsonRpcMessage<RoleClient>) {
        match message {
            JsonRpcMessage::Request(request) => self.0.send_modify(|pending| {
                if matches!(request.request, ClientRequest::InitializeRequest(_)) {
                    // The server may still answer the probe before it, which the library no longer expects.
                    pending.clear();
                }
                pending.insert(request.id.to_string());
            }),
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.remove_request(id);
                }
            }
            _ => {}
        }
    }

    /// Removes a request; returns true if it was pending.
    fn remove_request(&self, id: &RequestId) -> bool {
        self.0.send_if_modified(|pending| pending.remove(&id.to_string()))
    }

    /// Decides on a line of the server.
    pub(super) fn classify_and_untrack(&self, line: &[u8]) -> IncomingMessage {
        if has_too_many_values(line) {
            return IncomingMessage::TooComplex;
        }
        // A server may write other lines too, such as those of its log.
        let Ok(MessageHead { id, method, error }) = serde_json::from_slice(line) else {
            return IncomingMessage::Unused;
        };
        match (method, id) {
            (Some(method), Some(id)) => {
                IncomingMessage::RequestWithResponse(build_response(&method, &id))
            }
            (None, Some(id)) if self.remove_request(&id) => IncomingMessage::Answer(id),
            (None, None) if error.is_some() => IncomingMessage::ErrorWithoutId,
            _ => IncomingMessage::Unused,
        }
    }
}

/// Returns the answer to a request of the server. This side offers nothing but the answer to a ping.
fn build_response(method: &str, id: &RequestId) -> Value {
    match method {
        "ping" => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
        _ => {
            let error = json!({"code": METHOD_NOT_FOUND, "message": "Method not found"});
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        }
    }
}

/// Returns true if a text of JSON has more values than permitted. Reads no value, so that it needs no memory.
fn has_too_many_values(line: &[u8]) -> bool {
    let (mut count, mut is_in_text, mut is_escaped) = (0, false, false);
    for byte in line {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_in_text,
            b'"' => is_in_text = !is_in_text,
            b',' | b'[' | b'{' if !is_in_text => count += 1,
            _ => {}
        }
    }
    count > MAX_MESSAGE_VALUES
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rmcp::model::{ListToolsRequest, NumberOrString};

    use super::*;

    proptest! {
        #[test]
        fn only_an_answer_to_the_pending_request_passes(
            line in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..64),
                "\\{(\"id\":(1|2|\"1\"|null|\\[\\]),?)?(\"method\":(\"ping\"|1),?)?\"(result|error|x)\":[0-9{}]{1,2}\\}"
                    .prop_map(String::into_bytes),
            ],
        ) {
            let filter = MessageFilter::default();
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::default());
            filter.track_sent(&JsonRpcMessage::request(request, NumberOrString::Number(1)));
            let is_answer = matches!(filter.classify_and_untrack(&line), IncomingMessage::Answer(_));
            let parsed = serde_json::from_slice::<Value>(&line).unwrap_or_default();
            let is_expected = (parsed["id"] == 1 || parsed["id"] == "1") && parsed["method"].is_null();
            prop_assert_eq!(is_answer, is_expected);
            // Each request has one answer.
            prop_assert!(!matches!(filter.classify_and_untrack(&line), IncomingMessage::Answer(_)));
        }
    }

    #[test]
    fn values_are_counted_outside_of_texts() {
        let list = |item: &str, count| format!("[{}]", vec![item; count].join(","));
        assert!(!has_too_many_values(list("1", MAX_MESSAGE_VALUES).as_bytes()));
        assert!(has_too_many_values(list("1", MAX_MESSAGE_VALUES + 1).as_bytes()));
        assert!(has_too_many_values(list("{}", MAX_MESSAGE_VALUES / 2 + 1).as_bytes()));
        let text = r#"\",[{"#.repeat(MAX_MESSAGE_VALUES);
        assert!(!has_too_many_values(format!(r#"["{text}"]"#).as_bytes()));
    }
}
