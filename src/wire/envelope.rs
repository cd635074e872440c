//! The envelope of older clients: `protocol`, `version`, `id`, `type`, `context` and `payload`.
//!
//! No version of A2A knows it. It is translated here, and answered in kind, so that nothing of it
//! reaches the protocol's own paths.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use chrono::{DateTime, Utc};
use serde_json::Value;

use super::a2a::PARAMETERS;
use super::a2a::v1::{Content, History, Message, Metadata, Part, Role, SendRequest, Wait};
use super::fields::{Fields, Object, invalid, time};
use super::problem;

/// One request in its envelope.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    /// Its id, which the answer names.
    pub id: String,
    /// Who sends it, in its own words; who it is, its credentials say.
    pub from: Option<String>,
    /// The agent it is for.
    pub to: Option<String>,
    /// The conversation.
    pub conversation_id: Option<String>,
    /// The id of the message in it.
    pub message_id: Option<String>,
    version: String,
    method: String,
    params: Value,
}

/// What an envelope asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    /// `execute-agent`: send a message.
    Execute(Box<SendRequest>),
    /// `status`: tell how the agent is.
    Status,
    /// `list-capabilities`: tell what the agent can do; its card does.
    Capabilities,
}

/// Whether a body is an envelope.
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
        let refused = |text: &str| Failure::new(Code::InvalidRequest, text);
        let mut fields = Fields::of(body)?;
        if fields.text("protocol")?.as_deref() != Some("a2a") {
            return Err(refused("`protocol` must be \"a2a\""));
        }
        if fields.word("type")?.is_some_and(|kind| kind != "request") {
            return Err(refused("`type` must be \"request\""));
        }
        fields.time("timestamp")?;
        let mut context = fields.object("context")?.unwrap_or_default();
        let mut payload = fields.inner("payload")?;
        Ok(Self {
            id: fields.needed("id")?,
            from: context.word("from")?,
            to: context.word("to")?,
            conversation_id: context.word("conversationId")?,
            message_id: context.word("messageId")?,
            version: fields.word("version")?.unwrap_or_else(|| "0.3.0".to_owned()),
            method: payload.needed("method")?,
            params: payload.value("params").unwrap_or_default(),
        })
    }

    /// The version of the protocol that it names.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// What it asks for.
    ///
    /// # Errors
    /// `method-unknown`, or `invalid-params`, naming the field.
    pub fn call(&self) -> Result<Call, Failure> {
        match self.method.as_str() {
            "execute-agent" => self.send().map(Box::new).map(Call::Execute),
            "status" => Ok(Call::Status),
            "list-capabilities" => Ok(Call::Capabilities),
            _ => Err(Failure::new(Code::MethodUnknown, "there is no such method in the envelope")),
        }
    }

    /// `input` is a text or any data, `parameters` are for the templates, and `wait = false` asks
    /// for an answer at once.
    fn send(&self) -> Result<SendRequest, Failure> {
        let mut params = Fields::of(self.params.clone())?;
        let content = match params.value("input").or_else(|| params.value("message")) {
            Some(Value::String(text)) => Content::Text(text),
            Some(data @ Value::Object(_)) => Content::Data(data),
            _ => return Err(invalid("`payload.params.input` must be a text or an object")),
        };
        let parameters = params.data("parameters")?;
        let mut metadata = Metadata::new();
        if !parameters.is_empty() {
            metadata.insert(PARAMETERS.to_owned(), parameters.into());
        }
        let waits = params.truth("wait")?.unwrap_or(true);
        Ok(SendRequest {
            message: Message {
                message_id: self.message_id.clone().unwrap_or_else(|| self.id.clone()),
                context_id: self.conversation_id.clone(),
                task_id: params.word("taskId")?,
                role: Role::User,
                parts: vec![Part::of(content)],
                metadata,
                extensions: Vec::new(),
                reference_task_ids: Vec::new(),
            },
            wait: if waits { Wait::ForTheEnd } else { Wait::ForAcceptance },
            history: History::All,
            accepted_output_modes: Vec::new(),
            push: None,
            metadata: Metadata::new(),
        })
    }

    /// The answer when it worked. A task tells its conversation, if the request told none.
    #[must_use]
    pub fn response(&self, id: &str, at: DateTime<Utc>, result: Value) -> Value {
        let told = result.get("contextId").and_then(Value::as_str).map(str::to_owned);
        let conversation = self.conversation_id.clone().or(told);
        self.answer("response", (id, at), conversation, Object::of("result", result))
    }

    /// The answer when it did not work.
    #[must_use]
    pub fn error(&self, id: &str, at: DateTime<Utc>, failure: &Failure) -> Value {
        let conversation = self.conversation_id.clone();
        self.answer("error", (id, at), conversation, Object::of("error", error(failure)))
    }

    fn answer(
        &self,
        kind: &str,
        (id, at): (&str, DateTime<Utc>),
        conversation: Option<String>,
        payload: Object,
    ) -> Value {
        let context = Object::default()
            .some("from", self.to.clone())
            .some("to", self.from.clone())
            .some("conversation_id", conversation)
            .some("message_id", self.message_id.clone());
        Object::of("protocol", "a2a")
            .with("version", self.version.as_str())
            .with("id", id)
            .with("type", kind)
            .with("timestamp", time(at))
            .with("in_response_to", self.id.as_str())
            .with("context", context)
            .with("payload", payload.with("method", self.method.as_str()))
            .into()
    }
}

/// The answer to an envelope that could not be read.
#[must_use]
pub fn refusal(id: &str, at: DateTime<Utc>, failure: &Failure) -> Value {
    Object::of("protocol", "a2a")
        .with("version", "0.3.0")
        .with("id", id)
        .with("type", "error")
        .with("timestamp", time(at))
        .with("payload", Object::of("error", error(failure)))
        .into()
}

fn error(failure: &Failure) -> Object {
    Object::of("code", problem::numbers(failure.code).jsonrpc)
        .with("message", failure.message.as_str())
        .with("data", problem::details(failure))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn body(payload: &Value) -> Value {
        json!({
            "protocol": "a2a", "version": "0.3.0", "id": "e-1", "type": "request",
            "timestamp": "2030-01-31T12:00:00Z",
            "context": {"from": "me", "to": "echo", "conversation_id": "c", "message_id": "m"},
            "payload": payload,
        })
    }

    fn called(payload: &Value) -> Result<Call, Failure> {
        assert!(is_envelope(&body(payload)));
        Envelope::read(body(payload))?.call()
    }

    #[test]
    fn what_is_to_be_executed_becomes_a_message() {
        let params = json!({"input": "x", "parameters": {"a": 1}});
        let call = called(&json!({"method": "execute-agent", "params": params}));
        let Ok(Call::Execute(send)) = call else { panic!("{call:?}") };
        let SendRequest { message, wait, .. } = *send;
        assert_eq!((message.message_id.as_str(), message.context_id.as_deref()), ("m", Some("c")));
        assert_eq!((message.parts, wait), (vec![Part::text("x")], Wait::ForTheEnd));
        assert_eq!(message.metadata[PARAMETERS], json!({"a": 1}));
        assert_eq!(called(&json!({"method": "status"})), Ok(Call::Status));
        assert_eq!(called(&json!({"method": "list-capabilities"})), Ok(Call::Capabilities));
    }

    #[test]
    fn the_answer_is_an_envelope_that_names_the_request() {
        let envelope = Envelope::read(body(&json!({"method": "status"}))).expect("an envelope");
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
        let error = envelope.error("e-3", at, &failure);
        assert_eq!((&error["type"], &error["in_response_to"]), (&json!("error"), &json!("e-1")));
        assert_eq!(error["payload"]["error"]["code"], -32050);
        assert_eq!(error["payload"]["error"]["data"]["code"], "queue-full");
    }

    #[test]
    fn what_is_no_request_in_an_envelope_is_refused_with_its_reason() {
        let code = |body| Envelope::read(body).and_then(|read| read.call()).map_err(|no| no.code);
        for (body, refused) in [
            (json!({}), Code::InvalidRequest),
            (json!([]), Code::InvalidParams),
            (json!({"protocol": "a2a", "type": "stream"}), Code::InvalidRequest),
            (json!({"protocol": "a2a", "id": "e"}), Code::InvalidParams),
            (json!({"protocol": "a2a", "payload": {"method": "status"}}), Code::InvalidParams),
            (body(&json!({"method": "other"})), Code::MethodUnknown),
            (body(&json!({"method": "execute-agent"})), Code::InvalidParams),
            (body(&json!({"method": "execute-agent", "params": []})), Code::InvalidParams),
        ] {
            assert_eq!(code(body.clone()), Err(refused), "{body}");
        }
    }
}
