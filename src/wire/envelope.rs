//! Envelope of older clients: `protocol`, `version`, `id`, `type`, `context` and `payload`.
//!
//! No version of A2A defines the envelope. This module translates requests and answers, so that the protocol's own
//! code paths do not contain any of it.

use algonius_a2a::json_object::{ObjectBuilder, ObjectFields, format_time, invalid_params};
use algonius_a2a::problem;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use chrono::{DateTime, Utc};
use serde_json::Value;

use algonius_a2a::PARAMETERS_EXTENSION;
use algonius_a2a::v1::{
    A2aPart, HistoryLength, Message, Metadata, PartContent, Role, SendMode, SendRequest,
};

/// Request in its envelope.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    /// Id of the request, which the answer repeats.
    pub id: String,
    /// Sender of the request, in its own words; the credentials alone identify the caller.
    pub sender: Option<String>,
    /// Id of the agent.
    pub recipient: Option<String>,
    /// Id of the conversation.
    pub conversation_id: Option<String>,
    /// Id of the message.
    pub message_id: Option<String>,
    version: String,
    method: String,
    params: Value,
}

/// Operation that an envelope requests.
#[derive(Debug, Clone, PartialEq)]
pub enum EnvelopeCall {
    /// `execute-agent`: sends a message.
    Execute(Box<SendRequest>),
    /// `status`: returns the state of the agent.
    Status,
    /// `list-capabilities`: returns the card of the agent.
    Capabilities,
}

/// True if a body is an envelope.
#[must_use]
pub fn is_envelope(body: &Value) -> bool {
    body.get("protocol").and_then(Value::as_str) == Some("a2a")
}

impl Envelope {
    /// Reads an envelope.
    ///
    /// # Errors
    /// `invalid-request` for what is not a request in an envelope, `invalid-params` for a field of
    /// the wrong kind.
    pub fn read(body: Value) -> Result<Self, Failure> {
        let invalid_request = |text: &str| Failure::new(Code::InvalidRequest, text);
        let mut fields = ObjectFields::from_value(body)?;
        // The caller checked this before; here it keeps the function correct for every body.
        if fields.take_text("protocol")?.as_deref() != Some("a2a") {
            return Err(invalid_request("`protocol` must be \"a2a\""));
        }
        if fields.take_non_empty_text("type")?.is_some_and(|kind| kind != "request") {
            return Err(invalid_request("`type` must be \"request\""));
        }
        // Checked and not used: the service's own clock counts.
        fields.take_time("timestamp")?;
        let mut context = fields.take_object("context")?.unwrap_or_default();
        let mut payload = fields.take_required_object("payload")?;
        Ok(Self {
            id: fields.take_required_text("id")?,
            sender: context.take_non_empty_text("from")?,
            recipient: context.take_non_empty_text("to")?,
            conversation_id: context.take_non_empty_text("conversationId")?,
            message_id: context.take_non_empty_text("messageId")?,
            // Envelopes are older than 1.0.
            version: fields.take_non_empty_text("version")?.unwrap_or_else(|| "0.3.0".to_owned()),
            method: payload.take_required_text("method")?,
            params: payload.take_value("params").unwrap_or_default(),
        })
    }

    /// Returns the protocol version that the envelope names.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the operation that the envelope requests.
    ///
    /// # Errors
    /// `method-unknown`, or `invalid-params`, naming the field.
    pub fn requested_call(&self) -> Result<EnvelopeCall, Failure> {
        match self.method.as_str() {
            "execute-agent" => self.parse_send_request().map(Box::new).map(EnvelopeCall::Execute),
            "status" => Ok(EnvelopeCall::Status),
            "list-capabilities" => Ok(EnvelopeCall::Capabilities),
            _ => Err(Failure::new(Code::MethodUnknown, "there is no such method in the envelope")),
        }
    }

    /// Reads `execute-agent`: `input` is a text or an object, `parameters` are the values for the templates, and
    /// `wait = false` requests an immediate answer.
    fn parse_send_request(&self) -> Result<SendRequest, Failure> {
        let mut params = ObjectFields::from_value(self.params.clone())?;
        let content = match params.take_value("input").or_else(|| params.take_value("message")) {
            Some(Value::String(text)) => PartContent::Text(text),
            Some(data @ Value::Object(_)) => PartContent::Data(data),
            _ => return Err(invalid_params("`payload.params.input` must be a text or an object")),
        };
        let parameters = params.take_json_map("parameters")?;
        let mut metadata = Metadata::new();
        if !parameters.is_empty() {
            metadata.insert(PARAMETERS_EXTENSION.to_owned(), parameters.into());
        }
        let is_blocking = params.take_boolean("wait")?.unwrap_or(true);
        Ok(SendRequest {
            message: Message {
                // A repeated envelope has the same id, so it finds the same execution.
                message_id: self.message_id.clone().unwrap_or_else(|| self.id.clone()),
                context_id: self.conversation_id.clone(),
                task_id: params.take_non_empty_text("taskId")?,
                role: Role::User,
                parts: vec![A2aPart::from_content(content)],
                metadata,
                extensions: Vec::new(),
                reference_task_ids: Vec::new(),
            },
            send_mode: if is_blocking { SendMode::Blocking } else { SendMode::NonBlocking },
            history_length: HistoryLength::All,
            accepted_output_modes: Vec::new(),
            push_config: None,
            metadata: Metadata::new(),
        })
    }

    /// Writes the answer of a successful request. If the request names no conversation, the answer names that of the
    /// task.
    #[must_use]
    pub fn response(&self, response_id: &str, at: DateTime<Utc>, result: Value) -> Value {
        // A new conversation gets its id from the service, and the client must be able to continue it.
        let result_context = result.get("contextId").and_then(Value::as_str).map(str::to_owned);
        let conversation = self.conversation_id.clone().or(result_context);
        self.write_response(
            "response",
            (response_id, at),
            conversation,
            ObjectBuilder::from_field("result", result),
        )
    }

    /// Writes the answer of a failed request.
    #[must_use]
    pub fn error_response(&self, response_id: &str, at: DateTime<Utc>, failure: &Failure) -> Value {
        let conversation = self.conversation_id.clone();
        self.write_response(
            "error",
            (response_id, at),
            conversation,
            ObjectBuilder::from_field("error", error_payload(failure)),
        )
    }

    fn write_response(
        &self,
        kind: &str,
        (response_id, at): (&str, DateTime<Utc>),
        conversation: Option<String>,
        payload: ObjectBuilder,
    ) -> Value {
        let context = ObjectBuilder::default()
            // The answer goes back, so sender and receiver are exchanged.
            .with_optional_field("from", self.recipient.clone())
            .with_optional_field("to", self.sender.clone())
            .with_optional_field("conversation_id", conversation)
            .with_optional_field("message_id", self.message_id.clone());
        ObjectBuilder::from_field("protocol", "a2a")
            .with_field("version", self.version.as_str())
            .with_field("id", response_id)
            .with_field("type", kind)
            .with_field("timestamp", format_time(at))
            .with_field("in_response_to", self.id.as_str())
            .with_field("context", context)
            .with_field("payload", payload.with_field("method", self.method.as_str()))
            .into()
    }
}

/// Writes the answer to an envelope that could not be read.
#[must_use]
pub fn unreadable_envelope_response(
    response_id: &str,
    at: DateTime<Utc>,
    failure: &Failure,
) -> Value {
    ObjectBuilder::from_field("protocol", "a2a")
        // The version of the request is unknown, because the envelope could not be read.
        .with_field("version", "0.3.0")
        .with_field("id", response_id)
        .with_field("type", "error")
        .with_field("timestamp", format_time(at))
        .with_field("payload", ObjectBuilder::from_field("error", error_payload(failure)))
        .into()
}

fn error_payload(failure: &Failure) -> ObjectBuilder {
    ObjectBuilder::from_field("code", problem::wire_codes(failure.code).jsonrpc)
        .with_field("message", failure.message.as_str())
        .with_field("data", problem::error_details(failure))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z]{0,6}".prop_map(Value::from),
        ];
        let key = prop_oneof!["[a-z]{0,4}", Just("context".to_owned()), Just("payload".to_owned())];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((key.clone(), inner), 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_json_value_causes_a_panic(value in any_json(), field in any_json()) {
            _ = Envelope::read(value);
            let mut envelope = envelope_with_payload(&field);
            _ = Envelope::read(envelope.clone());
            envelope["context"] = field;
            _ = Envelope::read(envelope);
        }
    }

    fn envelope_with_payload(payload: &Value) -> Value {
        json!({
            "protocol": "a2a", "version": "0.3.0", "id": "e-1", "type": "request",
            "timestamp": "2030-01-31T12:00:00Z",
            "context": {"from": "me", "to": "echo", "conversation_id": "c", "message_id": "m"},
            "payload": payload,
        })
    }

    fn read_call(payload: &Value) -> Result<EnvelopeCall, Failure> {
        assert!(is_envelope(&envelope_with_payload(payload)));
        Envelope::read(envelope_with_payload(payload))?.requested_call()
    }

    #[test]
    fn an_execute_call_in_an_envelope_becomes_a_message() {
        let params = json!({"input": "x", "parameters": {"a": 1}});
        let call = read_call(&json!({"method": "execute-agent", "params": params}));
        let Ok(EnvelopeCall::Execute(send)) = call else { panic!("{call:?}") };
        let SendRequest { message, send_mode: wait, .. } = *send;
        assert_eq!((message.message_id.as_str(), message.context_id.as_deref()), ("m", Some("c")));
        assert_eq!((message.parts, wait), (vec![A2aPart::text("x")], SendMode::Blocking));
        assert_eq!(message.metadata[PARAMETERS_EXTENSION], json!({"a": 1}));
        assert_eq!(read_call(&json!({"method": "status"})), Ok(EnvelopeCall::Status));
        assert_eq!(
            read_call(&json!({"method": "list-capabilities"})),
            Ok(EnvelopeCall::Capabilities)
        );
    }

    #[test]
    fn an_envelope_response_names_its_request() {
        let envelope = Envelope::read(envelope_with_payload(&json!({"method": "status"})))
            .expect("an envelope");
        let at = "2030-01-31T12:00:01Z".parse().expect("a time");
        let answer = envelope.response("e-2", at, json!({"x": 1}));
        assert_eq!(
            answer,
            json!({
                "protocol": "a2a", "version": "0.3.0", "id": "e-2", "type": "response",
                "timestamp": "2030-01-31T12:00:01.000Z", "in_response_to": "e-1",
                "context": {"from": "echo", "to": "me", "conversation_id": "c", "message_id": "m"},
                "payload": {"method": "status", "result": {"x": 1}},
            })
        );
        let failure = Failure::new(Code::QueueFull, "it is so");
        let error = envelope.error_response("e-3", at, &failure);
        assert_eq!((&error["type"], &error["in_response_to"]), (&json!("error"), &json!("e-1")));
        assert_eq!(error["payload"]["error"]["code"], -32050);
        assert_eq!(error["payload"]["error"]["data"]["code"], "queue-full");
    }

    #[test]
    fn invalid_envelopes_are_refused_by_their_reason() {
        let error_code = |body| {
            Envelope::read(body)
                .and_then(|read| read.requested_call())
                .map_err(|failure| failure.code)
        };
        for (body, expected) in [
            (json!({}), Code::InvalidRequest),
            (json!([]), Code::InvalidParams),
            (json!({"protocol": "a2a", "type": "stream"}), Code::InvalidRequest),
            (json!({"protocol": "a2a", "id": "e"}), Code::InvalidParams),
            (json!({"protocol": "a2a", "payload": {"method": "status"}}), Code::InvalidParams),
            (envelope_with_payload(&json!({"method": "other"})), Code::MethodUnknown),
            (envelope_with_payload(&json!({"method": "execute-agent"})), Code::InvalidParams),
            (
                envelope_with_payload(&json!({"method": "execute-agent", "params": []})),
                Code::InvalidParams,
            ),
        ] {
            assert_eq!(error_code(body.clone()), Err(expected), "{body}");
        }
    }
}
