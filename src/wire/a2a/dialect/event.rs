//! What is told when: answers and the events of streams.

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::Dialect;
use crate::wire::a2a::v1::{ArtifactUpdate, Reply, StatusUpdate, StreamEvent};
use crate::wire::fields::{Fields, Object, invalid};

/// How a dialect tells what a thing is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::wire::a2a) enum Tag {
    /// By its field `kind`.
    Kind,
    /// By the name of the member that holds it.
    Member,
}

/// What an event can be: the member's name and the kind.
const EVENTS: [(&str, &str); 4] = [
    ("task", "task"),
    ("message", "message"),
    ("statusUpdate", "status-update"),
    ("artifactUpdate", "artifact-update"),
];

impl Dialect {
    /// An object that tells its kind where the dialect does so.
    pub(super) fn tagged(&self, kind: &str) -> Object {
        match self.tag {
            Tag::Kind => Object::of("kind", kind),
            Tag::Member => Object::default(),
        }
    }

    /// Refuses what says that it is something else.
    pub(super) fn check_kind(&self, fields: &mut Fields, kind: &str) -> Result<(), Failure> {
        match self.tag {
            Tag::Kind if fields.word("kind")?.is_some_and(|said| said != kind) => {
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

    /// An answer on its way out.
    pub(in crate::wire::a2a) fn reply_out(&self, reply: Reply) -> Value {
        match reply {
            Reply::Task(task) => self.event_out(StreamEvent::Task(task)),
            Reply::Message(message) => self.event_out(StreamEvent::Message(message)),
        }
    }

    /// An answer on its way in.
    pub(in crate::wire::a2a) fn reply_in(&self, value: Value) -> Result<Reply, Failure> {
        match self.event_in(value)? {
            StreamEvent::Task(task) => Ok(Reply::Task(task)),
            StreamEvent::Message(message) => Ok(Reply::Message(message)),
            StreamEvent::Status(_) | StreamEvent::Artifact(_) => {
                Err(invalid("the answer is neither a task nor a message"))
            }
        }
    }

    /// An event on its way out.
    pub(in crate::wire::a2a) fn event_out(&self, event: StreamEvent) -> Value {
        match event {
            StreamEvent::Task(task) => self.member("task", self.task_out(task)),
            StreamEvent::Message(message) => self.member("message", self.message_out(message)),
            StreamEvent::Status(update) => self.member("statusUpdate", self.moved_out(update)),
            StreamEvent::Artifact(update) => self.member("artifactUpdate", self.made_out(update)),
        }
    }

    /// An event on its way in.
    pub(in crate::wire::a2a) fn event_in(&self, value: Value) -> Result<StreamEvent, Failure> {
        let mut fields = Fields::of(value)?;
        let (member, fields) = match self.tag {
            Tag::Kind => {
                let kind = fields.needed("kind")?;
                (EVENTS.iter().find(|(_, known)| *known == kind).map(|(member, _)| *member), fields)
            }
            Tag::Member => {
                let mut found = None;
                for (member, _) in EVENTS {
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

    /// A dialect without a word for the end is taken to end where nothing changes any more.
    fn moved_in(&self, mut fields: Fields) -> Result<StatusUpdate, Failure> {
        let status = fields.inner("status")?;
        let status = self.status_in(status)?;
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

    fn made_in(&self, mut fields: Fields) -> Result<ArtifactUpdate, Failure> {
        let artifact = fields.inner("artifact")?;
        Ok(ArtifactUpdate {
            task_id: fields.needed("taskId")?,
            context_id: fields.text("contextId")?.unwrap_or_default(),
            artifact: self.artifact_in(artifact)?,
            append: fields.truth("append")?.unwrap_or_default(),
            last_chunk: fields.truth("lastChunk")?.unwrap_or_default(),
            metadata: fields.data("metadata")?,
        })
    }
}
