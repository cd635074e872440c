//! The envelope of older clients.

use algonius_a2a::PARAMETERS_EXTENSION;
use algonius_a2a::v1::SendRequest;
use algonius_actors::model::code::Code;
use chrono::DateTime;
use serde_json::{Value, json};

use super::dialect_readers::assert_valid_send;
use super::error_responses::assert_valid_refusal;
use super::wire::envelope::{Envelope, EnvelopeCall, is_envelope, unreadable_envelope_response};

/// The id of each answer.
const ANSWER_ID: &str = "answer";

/// A body is an envelope with a call in it, or it is refused for a reason. Every answer is an
/// envelope that names what it answers and that nobody takes for a request.
pub fn check(bytes: &[u8]) {
    let Ok(body) = serde_json::from_slice::<Value>(bytes) else { return };
    let parsed_envelope = Envelope::read(body.clone());
    let envelope = match parsed_envelope {
        Ok(envelope) => envelope,
        Err(failure) => {
            assert_valid_refusal(&failure, &[Code::InvalidRequest, Code::InvalidParams]);
            return assert_not_a_request(&unreadable_envelope_response(
                ANSWER_ID,
                DateTime::UNIX_EPOCH,
                &failure,
            ));
        }
    };
    assert!(is_envelope(&body), "{body}");
    assert!(!envelope.id.is_empty(), "{body}");
    match envelope.requested_call() {
        Ok(EnvelopeCall::Execute(send)) => assert_valid_execution(&envelope, &send),
        Ok(EnvelopeCall::Status | EnvelopeCall::Capabilities) => {}
        Err(failure) => {
            assert_valid_refusal(&failure, &[Code::MethodUnknown, Code::InvalidParams]);
            let error = envelope.error_response(ANSWER_ID, DateTime::UNIX_EPOCH, &failure);
            assert_refers_to_request(&error, &envelope);
        }
    }
    let result = json!({"contextId": "told"});
    let response = envelope.response(ANSWER_ID, DateTime::UNIX_EPOCH, result);
    assert_refers_to_request(&response, &envelope);
    let conversation_id = envelope.conversation_id.as_deref().unwrap_or("told");
    let reported_id = response.pointer("/context/conversation_id");
    assert_eq!(reported_id.and_then(Value::as_str), Some(conversation_id));
}

/// What is to be executed is one part, with nothing beside it but the values for templates.
fn assert_valid_execution(envelope: &Envelope, send: &SendRequest) {
    assert_valid_send(send);
    let message = &send.message;
    assert_eq!(message.parts.len(), 1);
    assert_eq!(message.context_id, envelope.conversation_id);
    let id = envelope.message_id.as_ref().unwrap_or(&envelope.id);
    assert_eq!(&message.message_id, id);
    assert!(message.metadata.keys().all(|name| name == PARAMETERS_EXTENSION), "{message:?}");
    assert_eq!(send.push_config, None);
}

fn assert_refers_to_request(answer: &Value, envelope: &Envelope) {
    assert_not_a_request(answer);
    let text = |pointer| answer.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    assert_eq!(text("/in_response_to").as_ref(), Some(&envelope.id));
    assert_eq!(text("/context/from"), envelope.recipient);
    assert_eq!(text("/context/to"), envelope.sender);
    assert_eq!(text("/context/message_id"), envelope.message_id);
}

/// An answer that a careless client sends back must not be run.
fn assert_not_a_request(answer: &Value) {
    assert!(is_envelope(answer), "{answer}");
    assert_eq!(answer.get("id"), Some(&Value::from(ANSWER_ID)));
    let reread = Envelope::read(answer.clone()).map_err(|failure| failure.code);
    assert_eq!(reread, Err(Code::InvalidRequest), "{answer}");
}
