//! A2A 1.0 in JSON, used by JSON-RPC and by HTTP alike: the JSON of the protocol's `.proto` file.

pub mod read;
pub mod write;

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::{Content, Part, Role, TaskState};
use crate::wire::a2a::dialect::{Dialect, Tag};
use crate::wire::fields::{Fields, Object, invalid};

/// How 1.0 speaks.
const DIALECT: Dialect = Dialect {
    tag: Tag::Member,
    parts: "parts",
    references: true,
    finals: false,
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
        TaskState::Canceled => "TASK_STATE_CANCELED",
        TaskState::Failed => "TASK_STATE_FAILED",
        TaskState::Rejected => "TASK_STATE_REJECTED",
        TaskState::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
    }
}

/// The word for who speaks.
#[must_use]
pub const fn role(role: Role) -> &'static str {
    match role {
        Role::User => "ROLE_USER",
        Role::Agent => "ROLE_AGENT",
    }
}

fn part_out(part: Part) -> Value {
    let Part { content, filename, media_type, metadata } = part;
    let part = match content {
        Content::Text(text) => Object::of("text", text),
        Content::Raw(bytes) => Object::of("raw", bytes),
        Content::Url(url) => Object::of("url", url),
        Content::Data(data) => Object::of("data", data),
    };
    part.some("filename", filename).some("mediaType", media_type).data("metadata", metadata).into()
}

fn part_in(mut fields: Fields) -> Result<Part, Failure> {
    let is_null = fields.has("data");
    let content =
        (fields.text("text")?, fields.bytes("raw")?, fields.text("url")?, fields.value("data"));
    let content = match content {
        (Some(text), None, None, None) => Content::Text(text),
        (None, Some(bytes), None, None) => Content::Raw(bytes),
        (None, None, Some(url), None) => Content::Url(url),
        (None, None, None, Some(data)) => Content::Data(data),
        // The one null that is a value.
        (None, None, None, None) if is_null => Content::Data(Value::Null),
        _ => {
            let place = fields.called();
            let text = format!("`{place}` must have one of `text`, `raw`, `url` and `data`");
            return Err(invalid(text));
        }
    };
    Ok(Part {
        content,
        filename: fields.word("filename")?,
        media_type: fields.word("mediaType")?,
        metadata: fields.data("metadata")?,
    })
}
