//! A2A 1.0 in JSON, used by JSON-RPC and by HTTP alike: the JSON of the protocol's `.proto` file.

pub mod read;
pub mod write;

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::v1::{A2aPart, PartContent, Role, TaskState};
use crate::dialect::{JsonDialect, TagStyle};
use crate::json_object::{ObjectBuilder, ObjectFields, invalid};

/// Dialect of 1.0.
const DIALECT: JsonDialect = JsonDialect {
    tag: TagStyle::Member,
    parts: "parts",
    references: true,
    has_final_field: false,
    state,
    role,
    part_out,
    part_in,
};

/// Returns the word of 1.0 for a task state.
#[must_use]
pub const fn state(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted => "TASK_STATE_SUBMITTED",
        TaskState::Working => "TASK_STATE_WORKING",
        TaskState::InputRequired => "TASK_STATE_INPUT_REQUIRED",
        TaskState::Completed => "TASK_STATE_COMPLETED",
        TaskState::Canceled => "TASK_STATE_CANCELED",
        TaskState::Failed => "TASK_STATE_FAILED",
        TaskState::Rejected => "TASK_STATE_REJECTED",
        TaskState::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
    }
}

/// Returns the word of 1.0 for the role of a message.
#[must_use]
pub const fn role(role: Role) -> &'static str {
    match role {
        Role::User => "ROLE_USER",
        Role::Agent => "ROLE_AGENT",
    }
}

fn part_out(part: A2aPart) -> Value {
    let A2aPart { content, filename, media_type, metadata } = part;
    let part = match content {
        PartContent::Text(text) => ObjectBuilder::of("text", text),
        PartContent::Raw(bytes) => ObjectBuilder::of("raw", bytes),
        PartContent::Url(url) => ObjectBuilder::of("url", url),
        PartContent::Data(data) => ObjectBuilder::of("data", data),
    };
    part.some("filename", filename).some("mediaType", media_type).data("metadata", metadata).into()
}

fn part_in(mut fields: ObjectFields) -> Result<A2aPart, Failure> {
    // Checked before the fields are read, because reading removes them.
    let is_null = fields.has("data");
    let content =
        (fields.text("text")?, fields.bytes("raw")?, fields.text("url")?, fields.value("data"));
    let content = match content {
        (Some(text), None, None, None) => PartContent::Text(text),
        (None, Some(bytes), None, None) => PartContent::Raw(bytes),
        (None, None, Some(url), None) => PartContent::Url(url),
        (None, None, None, Some(data)) => PartContent::Data(data),
        // A null in `data` is a value; in every other field it means that the field is absent.
        (None, None, None, None) if is_null => PartContent::Data(Value::Null),
        _ => {
            let path = fields.path_for_error();
            let text = format!("`{path}` must have one of `text`, `raw`, `url` and `data`");
            return Err(invalid(text));
        }
    };
    Ok(A2aPart {
        content,
        filename: fields.string("filename")?,
        media_type: fields.string("mediaType")?,
        metadata: fields.data("metadata")?,
    })
}
