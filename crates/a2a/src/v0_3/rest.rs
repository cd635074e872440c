//! A2A 0.3 over HTTP: the JSON of the `.proto` file of 0.3, as the official clients of that version send and read
//! it.
//!
//! Names of its own: `content` for the parts of a message, `TASK_STATE_CANCELLED` with two L, and `name` as in
//! `tasks/ID`. Losses: those of JSON-RPC and the references to other tasks. Readers of that version reject unknown
//! fields, so the service adds none.

pub mod read;
pub mod resource_name;
pub mod write;

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use crate::dialect::{JsonDialect, TagStyle};
use crate::json_object::{ObjectBuilder, ObjectFields, invalid_params};
use crate::v1::{A2aPart, PartContent, TaskState};
use crate::v1_json::role_name;

/// Dialect of 0.3 over HTTP.
const DIALECT: JsonDialect = JsonDialect {
    tag_style: TagStyle::External,
    parts_member: "content",
    writes_reference_task_ids: false,
    has_final_field: true,
    state_name,
    role_name,
    write_part,
    read_part,
};

/// Returns the word of 0.3 over HTTP for a task state.
#[must_use]
pub const fn state_name(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted => "TASK_STATE_SUBMITTED",
        TaskState::Working => "TASK_STATE_WORKING",
        TaskState::InputRequired => "TASK_STATE_INPUT_REQUIRED",
        TaskState::Completed => "TASK_STATE_COMPLETED",
        TaskState::Canceled => "TASK_STATE_CANCELLED",
        TaskState::Failed => "TASK_STATE_FAILED",
        TaskState::Rejected => "TASK_STATE_REJECTED",
        TaskState::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
    }
}

fn write_part(part: A2aPart) -> Value {
    let A2aPart { content, filename, media_type, metadata } = part;
    let file = |name: &str, content: String| {
        let file = ObjectBuilder::from_field(name, content)
            .with_optional_field("mimeType", media_type)
            .with_optional_field("name", filename);
        ObjectBuilder::from_field("file", file)
    };
    let part = match content {
        PartContent::Text(text) => ObjectBuilder::from_field("text", text),
        // The `.proto` file has a message for data with one field of the same name.
        PartContent::Data(data) => ObjectBuilder::from_field(
            "data",
            ObjectBuilder::from_field("data", super::wrap_unless_object(data)),
        ),
        PartContent::Raw(bytes) => file("fileWithBytes", bytes),
        PartContent::Url(url) => file("fileWithUri", url),
    };
    part.with_non_empty_map("metadata", metadata).into()
}

fn read_part(mut fields: ObjectFields) -> Result<A2aPart, Failure> {
    let metadata = fields.take_json_map("metadata")?;
    // All three are read, so that a part with two contents is refused instead of losing one.
    let contents =
        (fields.take_text("text")?, fields.take_object("data")?, fields.take_object("file")?);
    let (content, filename, media_type) = match contents {
        (Some(text), None, None) => (PartContent::Text(text), None, None),
        (None, Some(mut data), None) => {
            (PartContent::Data(data.take_json_map("data")?.into()), None, None)
        }
        (None, None, Some(mut file)) => {
            let content =
                match (file.take_base64_text("fileWithBytes")?, file.take_text("fileWithUri")?) {
                    (Some(bytes), None) => PartContent::Raw(bytes),
                    (None, Some(uri)) => PartContent::Url(uri),
                    _ => {
                        let path = file.path_for_error();
                        let alternatives = "either `fileWithBytes` or `fileWithUri`";
                        return Err(invalid_params(format!("`{path}` must have {alternatives}")));
                    }
                };
            (content, file.take_non_empty_text("name")?, file.take_non_empty_text("mimeType")?)
        }
        _ => {
            let path = fields.path_for_error();
            return Err(invalid_params(format!(
                "`{path}` must have one of `text`, `data` and `file`"
            )));
        }
    };
    Ok(A2aPart { content, filename, media_type, metadata })
}
