//! A2A 0.3 on JSON-RPC: `kind` tells what a thing is, states are in lower case. What it says over
//! HTTP is another dialect: [`rest`].
//!
//! Lost on the way through 0.3: data other than an object travels inside one, only files have a
//! name and a media type, and a push configuration has one scheme of authentication.

pub mod read;
pub mod rest;
pub mod write;

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::dialect::{Dialect, Tag};
use super::v1::{Content, Part, Role, TaskState};
use crate::wire::fields::{Fields, Object, invalid};

/// How 0.3 speaks on JSON-RPC.
const DIALECT: Dialect = Dialect {
    tag: Tag::Kind,
    parts: "parts",
    references: true,
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

/// The word for who speaks.
#[must_use]
pub const fn role(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Agent => "agent",
    }
}

fn part_out(part: Part) -> Value {
    let Part { content, filename, media_type, metadata } = part;
    let kind = |kind: &str| Object::of("kind", kind);
    let file = |name: &str, content: String| {
        let file = Object::of(name, content).some("name", filename).some("mimeType", media_type);
        kind("file").with("file", file)
    };
    let part = match content {
        Content::Text(text) => kind("text").with("text", text),
        Content::Data(data) => kind("data").with("data", object(data)),
        Content::Raw(bytes) => file("bytes", bytes),
        Content::Url(url) => file("uri", url),
    };
    part.data("metadata", metadata).into()
}

/// Data of 0.3 is an object; any other value travels inside one.
fn object(data: Value) -> Value {
    if data.is_object() { data } else { Object::of("value", data).into() }
}

fn part_in(mut fields: Fields) -> Result<Part, Failure> {
    let wrong = |fields: &Fields| {
        let kinds = "\"text\", \"data\" or \"file\" and have the field of that name";
        invalid(format!("`{}` must be of kind {kinds}", fields.called()))
    };
    let kind = fields.word("kind")?;
    let metadata = fields.data("metadata")?;
    let held = (fields.text("text")?, fields.value("data"), fields.object("file")?);
    let (content, filename, media_type) = match (kind.as_deref(), held) {
        (Some("text") | None, (Some(text), None, None)) => (Content::Text(text), None, None),
        (Some("data") | None, (None, Some(data @ Value::Object(_)), None)) => {
            (Content::Data(data), None, None)
        }
        (Some("file") | None, (None, None, Some(mut file))) => {
            let content = match (file.bytes("bytes")?, file.text("uri")?) {
                (Some(bytes), None) => Content::Raw(bytes),
                (None, Some(uri)) => Content::Url(uri),
                _ => {
                    let place = file.called();
                    return Err(invalid(format!("`{place}` must have either `bytes` or `uri`")));
                }
            };
            (content, file.word("name")?, file.word("mimeType")?)
        }
        _ => return Err(wrong(&fields)),
    };
    Ok(Part { content, filename, media_type, metadata })
}
