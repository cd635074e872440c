//! Conversion of answers and stream events in all JSON dialects.

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::JsonDialect;
use crate::json_object::{ObjectBuilder, ObjectFields, invalid_params};
use crate::v1::{ArtifactUpdate, SendResponse, StatusUpdate, StreamEvent};

/// Way in which a dialect marks the kind of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TagStyle {
    /// The field `kind` of the object names the kind.
    Internal,
    /// The name of the member that contains the object names the kind.
    External,
}

/// Kinds of events: the name of the member and the value of `kind`.
const EVENT_KINDS: [(&str, &str); 4] = [
    ("task", "task"),
    ("message", "message"),
    ("statusUpdate", "status-update"),
    ("artifactUpdate", "artifact-update"),
];

impl JsonDialect {
    /// Creates an object, with the field `kind` if the dialect has one.
    pub(super) fn object_of_kind(&self, kind: &str) -> ObjectBuilder {
        match self.tag_style {
            TagStyle::Internal => ObjectBuilder::from_field("kind", kind),
            TagStyle::External => ObjectBuilder::default(),
        }
    }

    /// Rejects an object whose field `kind` names another kind.
    pub(super) fn check_kind(&self, fields: &mut ObjectFields, kind: &str) -> Result<(), Failure> {
        match self.tag_style {
            // An absent `kind` is accepted: the place of the object determines what it is.
            TagStyle::Internal
                if fields.take_non_empty_text("kind")?.is_some_and(|it| it != kind) =>
            {
                Err(invalid_params(format!("`{}` must be \"{kind}\"", fields.field_path("kind"))))
            }
            TagStyle::Internal | TagStyle::External => Ok(()),
        }
    }

    fn wrap_if_externally_tagged(&self, name: &str, value: Value) -> Value {
        match self.tag_style {
            TagStyle::Internal => value,
            TagStyle::External => ObjectBuilder::from_field(name, value).into(),
        }
    }

    /// Writes an answer as JSON.
    pub(crate) fn write_send_response(&self, reply: SendResponse) -> Value {
        match reply {
            SendResponse::Task(task) => self.write_event(StreamEvent::Task(task)),
            SendResponse::Message(message) => self.write_event(StreamEvent::Message(message)),
        }
    }

    /// Reads an answer from JSON.
    pub(crate) fn read_send_response(&self, value: Value) -> Result<SendResponse, Failure> {
        match self.read_event(value)? {
            StreamEvent::Task(task) => Ok(SendResponse::Task(task)),
            StreamEvent::Message(message) => Ok(SendResponse::Message(message)),
            StreamEvent::Status(_) | StreamEvent::Artifact(_) => {
                Err(invalid_params("the answer is neither a task nor a message"))
            }
        }
    }

    /// Writes a stream event as JSON.
    pub(crate) fn write_event(&self, event: StreamEvent) -> Value {
        match event {
            StreamEvent::Task(task) => {
                self.wrap_if_externally_tagged("task", self.write_task(task))
            }
            StreamEvent::Message(message) => {
                self.wrap_if_externally_tagged("message", self.write_message(message))
            }
            StreamEvent::Status(it) => {
                self.wrap_if_externally_tagged("statusUpdate", self.write_status_update(it))
            }
            StreamEvent::Artifact(it) => {
                self.wrap_if_externally_tagged("artifactUpdate", self.write_artifact_update(it))
            }
        }
    }

    /// Reads a stream event from JSON.
    pub(crate) fn read_event(&self, value: Value) -> Result<StreamEvent, Failure> {
        let mut fields = ObjectFields::from_value(value)?;
        let (member, fields) = match self.tag_style {
            TagStyle::Internal => {
                let kind = fields.take_required_text("kind")?;
                let known = EVENT_KINDS.iter().find(|(_, known)| *known == kind);
                (known.map(|(member, _)| *member), fields)
            }
            TagStyle::External => {
                let mut found = None;
                for (member, _) in EVENT_KINDS {
                    // Unknown members are ignored, so the known ones are tried in turn.
                    found = fields.take_object(member)?.map(|inner| (member, inner)).or(found);
                }
                found.map_or((None, fields), |(member, inner)| (Some(member), inner))
            }
        };
        match member {
            Some("task") => self.read_task(fields).map(StreamEvent::Task),
            Some("message") => self.read_message(fields).map(StreamEvent::Message),
            Some("statusUpdate") => self.read_status_update(fields).map(StreamEvent::Status),
            Some("artifactUpdate") => self.read_artifact_update(fields).map(StreamEvent::Artifact),
            _ => Err(invalid_params("the event is of no known kind")),
        }
    }

    fn write_status_update(&self, update: StatusUpdate) -> Value {
        let StatusUpdate { task_id, context_id, status, is_final, metadata } = update;
        self.object_of_kind("status-update")
            .with_field("taskId", task_id)
            .with_field("contextId", context_id)
            .with_field("status", self.write_status(status))
            .with_optional_field("final", self.has_final_field.then_some(is_final))
            .with_non_empty_map("metadata", metadata)
            .into()
    }

    /// Reads a status update. In a dialect without the field `final`, a terminal state ends the stream.
    fn read_status_update(&self, mut fields: ObjectFields) -> Result<StatusUpdate, Failure> {
        let status = fields.take_required_object("status")?;
        let status = self.read_status(status)?;
        // Dialects with the field may end a stream at a question, which is no terminal state.
        let final_flag = if self.has_final_field { fields.take_boolean("final")? } else { None };
        Ok(StatusUpdate {
            task_id: fields.take_required_text("taskId")?,
            context_id: fields.take_text("contextId")?.unwrap_or_default(),
            is_final: final_flag.unwrap_or(!self.has_final_field && status.state.is_terminal()),
            status,
            metadata: fields.take_json_map("metadata")?,
        })
    }

    fn write_artifact_update(&self, update: ArtifactUpdate) -> Value {
        let ArtifactUpdate { task_id, context_id, artifact, append, last_chunk, metadata } = update;
        self.object_of_kind("artifact-update")
            .with_field("taskId", task_id)
            .with_field("contextId", context_id)
            .with_field("artifact", self.write_artifact(artifact))
            .with_field("append", append)
            .with_field("lastChunk", last_chunk)
            .with_non_empty_map("metadata", metadata)
            .into()
    }

    fn read_artifact_update(&self, mut fields: ObjectFields) -> Result<ArtifactUpdate, Failure> {
        let artifact = fields.take_required_object("artifact")?;
        Ok(ArtifactUpdate {
            task_id: fields.take_required_text("taskId")?,
            context_id: fields.take_text("contextId")?.unwrap_or_default(),
            artifact: self.read_artifact(artifact)?,
            // Writers of protobuf JSON omit `false`.
            append: fields.take_boolean("append")?.unwrap_or_default(),
            last_chunk: fields.take_boolean("lastChunk")?.unwrap_or_default(),
            metadata: fields.take_json_map("metadata")?,
        })
    }
}
