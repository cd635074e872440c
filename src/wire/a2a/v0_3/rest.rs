//! A2A 0.3 over HTTP: the JSON of the `.proto` file of 0.3, as the official clients of that version
//! send and read it.
//!
//! Its own names: `content` for the parts of a message, `TASK_STATE_CANCELLED` with two L, and
//! `name` as in `tasks/ID`. Lost on the way: what is lost on JSON-RPC too, and references to other
//! tasks. Readers of that version refuse unknown fields, so nothing is added.

pub mod name;
pub mod read;
pub mod write;

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use crate::wire::a2a::dialect::{Dialect, Tag};
use crate::wire::a2a::v1::json::role;
use crate::wire::a2a::v1::{Content, Part, TaskState};
use crate::wire::fields::{Fields, Object, invalid};

/// How 0.3 speaks over HTTP.
const DIALECT: Dialect = Dialect {
    tag: Tag::Member,
    parts: "content",
    references: false,
    finals: true,
    state,
    role,
    part_out,
    part_in,
};

/// The word for a state.
#[must_use]
pub const fn state(state: TaskState) -> &'static str {
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

fn part_out(part: Part) -> Value {
    let Part { content, filename, media_type, metadata } = part;
    let file = |name: &str, content: String| {
        let file = Object::of(name, content).some("mimeType", media_type).some("name", filename);
        Object::of("file", file)
    };
    let part = match content {
        Content::Text(text) => Object::of("text", text),
        Content::Data(data) => Object::of("data", Object::of("data", super::object(data))),
        Content::Raw(bytes) => file("fileWithBytes", bytes),
        Content::Url(url) => file("fileWithUri", url),
    };
    part.data("metadata", metadata).into()
}

fn part_in(mut fields: Fields) -> Result<Part, Failure> {
    let metadata = fields.data("metadata")?;
    let held = (fields.text("text")?, fields.object("data")?, fields.object("file")?);
    let (content, filename, media_type) = match held {
        (Some(text), None, None) => (Content::Text(text), None, None),
        (None, Some(mut data), None) => (Content::Data(data.data("data")?.into()), None, None),
        (None, None, Some(mut file)) => {
            let content = match (file.bytes("fileWithBytes")?, file.text("fileWithUri")?) {
                (Some(bytes), None) => Content::Raw(bytes),
                (None, Some(uri)) => Content::Url(uri),
                _ => {
                    let place = file.called();
                    let either = "either `fileWithBytes` or `fileWithUri`";
                    return Err(invalid(format!("`{place}` must have {either}")));
                }
            };
            (content, file.word("name")?, file.word("mimeType")?)
        }
        _ => {
            let place = fields.called();
            return Err(invalid(format!("`{place}` must have one of `text`, `data` and `file`")));
        }
    };
    Ok(Part { content, filename, media_type, metadata })
}
