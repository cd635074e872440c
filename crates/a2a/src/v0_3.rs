//! A2A 0.3 over JSON-RPC: `kind` names the kind of an object, and states are in lower case. A2A 0.3 over HTTP is
//! another dialect: [`rest`].
//!
//! Losses of 0.3: data other than an object is wrapped in one, only files have a name and a media type, and a push
//! configuration has one authentication scheme.

pub mod read;
pub mod rest;
pub mod write;

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::dialect::{JsonDialect, TagStyle};
use super::v1::{A2aPart, PartContent, Role, TaskState};
use crate::json_object::{ObjectBuilder, ObjectFields, invalid_params};

/// Dialect of 0.3 over JSON-RPC.
const DIALECT: JsonDialect = JsonDialect {
    tag_style: TagStyle::Internal,
    parts_member: "parts",
    writes_reference_task_ids: true,
    has_final_field: true,
    state_name,
    role_name,
    write_part,
    read_part,
};

/// Returns the word of 0.3 for a task state.
#[must_use]
pub const fn state_name(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted => "submitted",
        TaskState::Working => "working",
        TaskState::InputRequired => "input-required",
        TaskState::Completed => "completed",
        TaskState::Canceled => "canceled",
        TaskState::Failed => "failed",
        TaskState::Rejected => "rejected",
        TaskState::AuthRequired => "auth-required",
    }
}

/// Returns the word of 0.3 for the role of a message.
#[must_use]
pub const fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Agent => "agent",
    }
}

fn write_part(part: A2aPart) -> Value {
    let A2aPart { content, filename, media_type, metadata } = part;
    let kind = |kind: &str| ObjectBuilder::from_field("kind", kind);
    let file = |name: &str, content: String| {
        let file = ObjectBuilder::from_field(name, content)
            .with_optional_field("name", filename)
            .with_optional_field("mimeType", media_type);
        kind("file").with_field("file", file)
    };
    let part = match content {
        PartContent::Text(text) => kind("text").with_field("text", text),
        PartContent::Data(data) => kind("data").with_field("data", wrap_unless_object(data)),
        PartContent::Raw(bytes) => file("bytes", bytes),
        PartContent::Url(url) => file("uri", url),
    };
    part.with_non_empty_map("metadata", metadata).into()
}

/// Returns the data as an object: 0.3 allows no other data, so any other value is wrapped in an object.
fn wrap_unless_object(data: Value) -> Value {
    if data.is_object() { data } else { ObjectBuilder::from_field("value", data).into() }
}

fn read_part(mut fields: ObjectFields) -> Result<A2aPart, Failure> {
    let wrong_kind_failure = |fields: &ObjectFields| {
        let kinds = "\"text\", \"data\" or \"file\" and have the field of that name";
        invalid_params(format!("`{}` must be of kind {kinds}", fields.path_for_error()))
    };
    // Drafts before 0.3 named the field `type`.
    let kind = fields.take_non_empty_text("kind")?.or(fields.take_non_empty_text("type")?);
    let metadata = fields.take_json_map("metadata")?;
    // All three are read, so that a part with two contents is refused instead of losing one.
    let contents =
        (fields.take_text("text")?, fields.take_value("data"), fields.take_object("file")?);
    let (content, filename, media_type) = match (kind.as_deref(), contents) {
        (Some("text") | None, (Some(text), None, None)) => (PartContent::Text(text), None, None),
        (Some("data") | None, (None, Some(data @ Value::Object(_)), None)) => {
            (PartContent::Data(data), None, None)
        }
        (Some("file") | None, (None, None, Some(mut file))) => {
            let content = match (file.take_base64_text("bytes")?, file.take_text("uri")?) {
                (Some(bytes), None) => PartContent::Raw(bytes),
                (None, Some(uri)) => PartContent::Url(uri),
                _ => {
                    let path = file.path_for_error();
                    return Err(invalid_params(format!(
                        "`{path}` must have either `bytes` or `uri`"
                    )));
                }
            };
            (content, file.take_non_empty_text("name")?, file.take_non_empty_text("mimeType")?)
        }
        _ => return Err(wrong_kind_failure(&fields)),
    };
    Ok(A2aPart { content, filename, media_type, metadata })
}

#[cfg(test)]
mod tests {
    use algonius_actors::model::code::Code;
    use serde_json::json;

    use super::*;
    use crate::v1::{
        Artifact, HistoryLength, Message, Metadata, SendMode, SendRequest, Task, TaskStatus,
    };

    fn message(parts: Vec<A2aPart>) -> Message {
        Message {
            message_id: "m".to_owned(),
            context_id: Some("c".to_owned()),
            task_id: Some("t".to_owned()),
            role: Role::User,
            parts,
            metadata: Metadata::new(),
            extensions: vec!["urn:e".to_owned()],
            reference_task_ids: vec!["r".to_owned()],
        }
    }

    #[test]
    fn a_task_is_written_as_the_protocol_specifies() {
        let file = |content| A2aPart {
            filename: Some("f".to_owned()),
            media_type: Some("text/plain".to_owned()),
            ..A2aPart::from_content(content)
        };
        let question = Message { role: Role::Agent, ..message(vec![A2aPart::text("what?")]) };
        let written = write::task(Task {
            id: "t".to_owned(),
            context_id: "c".to_owned(),
            status: TaskStatus {
                state: TaskState::InputRequired,
                message: Some(question),
                timestamp: "2030-01-31T12:00:00.0009Z".parse().expect("a time"),
            },
            artifacts: vec![Artifact {
                artifact_id: "a".to_owned(),
                name: None,
                description: Some("d".to_owned()),
                metadata: Metadata::new(),
                extensions: Vec::new(),
                parts: vec![
                    A2aPart::from_content(PartContent::Data(json!(5))),
                    file(PartContent::Raw("eA==".to_owned())),
                ],
            }],
            history: vec![message(vec![file(PartContent::Url("https://example.org".to_owned()))])],
            metadata: Metadata::new(),
        });
        let ids = json!({
            "kind": "message", "messageId": "m", "contextId": "c", "taskId": "t",
            "extensions": ["urn:e"], "referenceTaskIds": ["r"],
        });
        let message_json = |role: &str, parts: Value| {
            let mut message = ids.clone();
            message["role"] = json!(role);
            message["parts"] = parts;
            message
        };
        let file = |key: &str, value: &str| {
            let file = json!({key: value, "name": "f", "mimeType": "text/plain"});
            json!({"kind": "file", "file": file})
        };
        let expected = json!({
            "kind": "task",
            "id": "t",
            "contextId": "c",
            "status": {
                "state": "input-required",
                "message": message_json("agent", json!([{"kind": "text", "text": "what?"}])),
                "timestamp": "2030-01-31T12:00:00.000Z",
            },
            "artifacts": [{
                "artifactId": "a",
                "description": "d",
                "parts": [{"kind": "data", "data": {"value": 5}}, file("bytes", "eA==")],
            }],
            "history": [message_json("user", json!([file("uri", "https://example.org")]))],
        });
        assert_eq!(written, expected);
    }

    #[test]
    fn states_are_written_as_the_protocol_specifies() {
        let words: Vec<_> = TaskState::ALL.iter().map(|state| super::state_name(*state)).collect();
        assert_eq!(
            words.join(" "),
            "submitted working input-required completed canceled failed rejected auth-required"
        );
    }

    #[test]
    fn a_message_of_0_3_is_read_completely_and_waits_by_default() {
        let parts = json!([
            {"kind": "text", "text": "x"},
            {"kind": "data", "data": {"a": 1}},
            {"kind": "file", "file": {"bytes": "eA==", "name": "f", "mimeType": "text/plain"}},
        ]);
        let message_json = json!({
            "kind": "message", "messageId": "m", "contextId": "c", "taskId": "t", "role": "user",
            "parts": parts, "metadata": {"k": 1}, "not known": true,
        });
        let read_request_with = |configuration: Value| {
            let params = json!({"message": message_json, "configuration": configuration});
            read::send_request(params).expect("a request")
        };
        let SendRequest { message, send_mode: default_send_mode, history_length, .. } =
            read_request_with(Value::Null);
        let contents: Vec<_> = message.parts.into_iter().map(|part| part.content).collect();
        let raw = PartContent::Raw("eA==".to_owned());
        let expected = [PartContent::Text("x".to_owned()), PartContent::Data(json!({"a": 1})), raw];
        assert_eq!((contents.as_slice(), message.metadata["k"].as_i64()), (&expected[..], Some(1)));
        assert_eq!(
            (message.context_id.as_deref(), message.task_id.as_deref()),
            (Some("c"), Some("t"))
        );
        assert_eq!((default_send_mode, history_length), (SendMode::Blocking, HistoryLength::All));
        assert_eq!(read_request_with(json!({})).send_mode, SendMode::Blocking);
        let non_blocking = read_request_with(json!({"blocking": false, "historyLength": 0}));
        assert_eq!(
            (non_blocking.send_mode, non_blocking.history_length),
            (SendMode::NonBlocking, HistoryLength::Last(0))
        );
    }

    #[test]
    fn an_empty_task_or_context_id_is_absent() {
        let parts = json!([{"kind": "text", "text": "x"}]);
        let message = json!({
            "messageId": "m", "contextId": "", "taskId": "", "role": "user", "parts": parts,
        });
        let read = read::send_request(json!({"message": message})).expect("a request").message;
        assert_eq!((read.context_id, read.task_id), (None, None));
    }

    #[test]
    fn parameters_of_the_wrong_shape_are_refused() {
        let part = json!({"kind": "text", "text": "x"});
        let params_with_parts =
            |parts: Value| json!({"message": {"messageId": "m", "role": "user", "parts": parts}});
        assert!(read::send_request(params_with_parts(json!([part]))).is_ok());
        for params in [
            Value::Null,
            json!({}),
            json!([{"messageId": "m", "role": "user", "parts": [part]}, null, null]),
            json!({"message": ["message", "m", null, null, "user", [part], null]}),
            params_with_parts(json!([["text", "x", null, null, null]])),
            params_with_parts(json!([{"kind": "file", "file": ["eA==", null, null, null]}])),
            params_with_parts(json!([{"kind": "file", "file": {"bytes": "", "uri": ""}}])),
            params_with_parts(json!([{"kind": "text", "data": {}}])),
            params_with_parts(json!([{"kind": "other", "text": "x"}])),
            params_with_parts(json!([])),
            params_with_parts(json!("x")),
            json!({"message": {"messageId": "", "role": "user", "parts": [part]}}),
            json!({"message": {"messageId": "m", "role": "root", "parts": [part]}}),
        ] {
            let refusal = read::send_request(params.clone()).err().map(|failure| failure.code);
            assert_eq!(refusal, Some(Code::InvalidParams), "{params}");
        }
        for params in
            [json!(["t", null]), json!({"id": 5}), json!({"id": "t", "historyLength": -1})]
        {
            let code = read::task_query(params.clone()).err().map(|failure| failure.code);
            assert_eq!(code, Some(Code::InvalidParams), "{params}");
        }
    }
}
