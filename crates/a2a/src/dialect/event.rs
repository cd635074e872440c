//! Conversion of answers and stream events in all JSON dialects.

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::JsonDialect;
use crate::json_object::{Object, ObjectFields, invalid};
use crate::v1::{ArtifactUpdate, Reply, StatusUpdate, StreamEvent};

/// Way in which a dialect marks the kind of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    /// The field `kind` of the object names the kind.
    Kind,
    /// The name of the member that contains the object names the kind.
    Member,
}

/// Kinds of events: the name of the member and the value of `kind`.
const EVENTS: [(&str, &str); 4] = [
    ("task", "task"),
    ("message", "message"),
    ("statusUpdate", "status-update"),
    ("artifactUpdate", "artifact-update"),
];

impl JsonDialect {
    /// Creates an object, with the field `kind` if the dialect has one.
    pub(super) fn tagged(&self, kind: &str) -> Object {
        match self.tag {
            Tag::Kind => Object::of("kind", kind),
            Tag::Member => Object::default(),
        }
    }

    /// Rejects an object whose field `kind` names another kind.
    pub(super) fn check_kind(&self, fields: &mut ObjectFields, kind: &str) -> Result<(), Failure> {
        match self.tag {
            // An absent `kind` is accepted: the place of the object determines what it is.
            Tag::Kind if fields.string("kind")?.is_some_and(|said| said != kind) => {
                Err(invalid(format!("`{}` must be \"{kind}\"", fields.place("kind"))))
            }
            Tag::Kind | Tag::Member => Ok(()),
        }
    }

    fn member(&self, name: &str, value: Value) -> Value {
        match self.tag {
            Tag::Kind => value,
            Tag::Member => Object::of(name, value).into(),
        }
    }

    /// Writes an answer as JSON.
    pub(crate) fn reply_out(&self, reply: Reply) -> Value {
        match reply {
            Reply::Task(task) => self.event_out(StreamEvent::Task(task)),
            Reply::Message(message) => self.event_out(StreamEvent::Message(message)),
        }
    }

    /// Reads an answer from JSON.
    pub(crate) fn reply_in(&self, value: Value) -> Result<Reply, Failure> {
        match self.event_in(value)? {
            StreamEvent::Task(task) => Ok(Reply::Task(task)),
            StreamEvent::Message(message) => Ok(Reply::Message(message)),
            StreamEvent::Status(_) | StreamEvent::Artifact(_) => {
                Err(invalid("the answer is neither a task nor a message"))
            }
        }
    }

    /// Writes a stream event as JSON.
    pub(crate) fn event_out(&self, event: StreamEvent) -> Value {
        match event {
            StreamEvent::Task(task) => self.member("task", self.task_out(task)),
            StreamEvent::Message(message) => self.member("message", self.message_out(message)),
            StreamEvent::Status(update) => self.member("statusUpdate", self.moved_out(update)),
            StreamEvent::Artifact(update) => self.member("artifactUpdate", self.made_out(update)),
        }
    }

    /// Reads a stream event from JSON.
    pub(crate) fn event_in(&self, value: Value) -> Result<StreamEvent, Failure> {
        let mut fields = ObjectFields::of(value)?;
        let (member, fields) = match self.tag {
            Tag::Kind => {
                let kind = fields.needed("kind")?;
                (EVENTS.iter().find(|(_, known)| *known == kind).map(|(member, _)| *member), fields)
            }
            Tag::Member => {
                let mut found = None;
                for (member, _) in EVENTS {
                    // Unknown members are ignored, so the known ones are tried in turn.
                    found = fields.object(member)?.map(|inner| (member, inner)).or(found);
                }
                found.map_or((None, fields), |(member, inner)| (Some(member), inner))
            }
        };
        match member {
            Some("task") => self.task_in(fields).map(StreamEvent::Task),
            Some("message") => self.message_in(fields).map(StreamEvent::Message),
            Some("statusUpdate") => self.moved_in(fields).map(StreamEvent::Status),
            Some("artifactUpdate") => self.made_in(fields).map(StreamEvent::Artifact),
            _ => Err(invalid("the event is of no known kind")),
        }
    }

    fn moved_out(&self, update: StatusUpdate) -> Value {
        let StatusUpdate { task_id, context_id, status, is_final, metadata } = update;
        self.tagged("status-update")
            .with("taskId", task_id)
            .with("contextId", context_id)
            .with("status", self.status_out(status))
            .some("final", self.finals.then_some(is_final))
            .data("metadata", metadata)
            .into()
    }

    /// Reads a status update. In a dialect without the field `final`, a terminal state ends the stream.
    fn moved_in(&self, mut fields: ObjectFields) -> Result<StatusUpdate, Failure> {
        let status = fields.inner("status")?;
        let status = self.status_in(status)?;
        // Dialects with the field may end a stream at a question, which is no terminal state.
        let told = if self.finals { fields.truth("final")? } else { None };
        Ok(StatusUpdate {
            task_id: fields.needed("taskId")?,
            context_id: fields.text("contextId")?.unwrap_or_default(),
            is_final: told.unwrap_or(!self.finals && status.state.is_terminal()),
            status,
            metadata: fields.data("metadata")?,
        })
    }

    fn made_out(&self, update: ArtifactUpdate) -> Value {
        let ArtifactUpdate { task_id, context_id, artifact, append, last_chunk, metadata } = update;
        self.tagged("artifact-update")
            .with("taskId", task_id)
            .with("contextId", context_id)
            .with("artifact", self.artifact_out(artifact))
            .with("append", append)
            .with("lastChunk", last_chunk)
            .data("metadata", metadata)
            .into()
    }

    fn made_in(&self, mut fields: ObjectFields) -> Result<ArtifactUpdate, Failure> {
        let artifact = fields.inner("artifact")?;
        Ok(ArtifactUpdate {
            task_id: fields.needed("taskId")?,
            context_id: fields.text("contextId")?.unwrap_or_default(),
            artifact: self.artifact_in(artifact)?,
            // Writers of protobuf JSON omit `false`.
            append: fields.truth("append")?.unwrap_or_default(),
            last_chunk: fields.truth("lastChunk")?.unwrap_or_default(),
            metadata: fields.data("metadata")?,
        })
    }
}
