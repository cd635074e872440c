//! A2A 1.0 in JSON, used by JSON-RPC and by HTTP alike: the JSON of the protocol's `.proto` file.

pub mod read;
pub mod write;

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::v1::{A2aPart, PartContent, Role, TaskState};
use crate::dialect::{JsonDialect, TagStyle};
use crate::json_object::{ObjectBuilder, ObjectFields, invalid_params};

/// Dialect of 1.0.
const DIALECT: JsonDialect = JsonDialect {
    tag_style: TagStyle::External,
    parts_member: "parts",
    writes_reference_task_ids: true,
    has_final_field: false,
    state_name,
    role_name,
    write_part,
    read_part,
};

/// Returns the word of 1.0 for a task state.
#[must_use]
pub const fn state_name(state: TaskState) -> &'static str {
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
pub const fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "ROLE_USER",
        Role::Agent => "ROLE_AGENT",
    }
}

fn write_part(part: A2aPart) -> Value {
    let A2aPart { content, filename, media_type, metadata } = part;
    let part = match content {
        PartContent::Text(text) => ObjectBuilder::from_field("text", text),
        PartContent::Raw(bytes) => ObjectBuilder::from_field("raw", bytes),
        PartContent::Url(url) => ObjectBuilder::from_field("url", url),
        PartContent::Data(data) => ObjectBuilder::from_field("data", data),
    };
    part.with_optional_field("filename", filename)
        .with_optional_field("mediaType", media_type)
        .with_non_empty_map("metadata", metadata)
        .into()
}

fn read_part(mut fields: ObjectFields) -> Result<A2aPart, Failure> {
    // Checked before the fields are read, because reading removes them.
    let has_data_field = fields.contains("data");
    let content = (
        fields.take_text("text")?,
        fields.take_base64_text("raw")?,
        fields.take_text("url")?,
        fields.take_value("data"),
    );
    let content = match content {
        (Some(text), None, None, None) => PartContent::Text(text),
        (None, Some(bytes), None, None) => PartContent::Raw(bytes),
        (None, None, Some(url), None) => PartContent::Url(url),
        (None, None, None, Some(data)) => PartContent::Data(data),
        // A null in `data` is a value; in every other field it means that the field is absent.
        (None, None, None, None) if has_data_field => PartContent::Data(Value::Null),
        _ => {
            let path = fields.path_for_error();
            let text = format!("`{path}` must have one of `text`, `raw`, `url` and `data`");
            return Err(invalid_params(text));
        }
    };
    Ok(A2aPart {
        content,
        filename: fields.take_non_empty_text("filename")?,
        media_type: fields.take_non_empty_text("mediaType")?,
        metadata: fields.take_json_map("metadata")?,
    })
}
