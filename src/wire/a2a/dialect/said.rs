//! What is said, made and reported: messages, artifacts, tasks.

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::{Dialect, Tag};
use crate::wire::a2a::v1::{Artifact, Message, Part, Task, TaskStatus};
use crate::wire::fields::{Fields, Object, invalid, time};

impl Dialect {
    /// A message on its way out.
    pub(in crate::wire::a2a) fn message_out(&self, message: Message) -> Value {
        let Message {
            message_id,
            context_id,
            task_id,
            role,
            parts,
            metadata,
            extensions,
            reference_task_ids,
        } = message;
        let references = if self.references { reference_task_ids } else { Vec::new() };
        self.tagged("message")
            .with("messageId", message_id)
            .some("contextId", context_id)
            .some("taskId", task_id)
            .with("role", (self.role)(role))
            .with(self.parts, self.parts_out(parts))
            .data("metadata", metadata)
            .listed("extensions", extensions)
            .listed("referenceTaskIds", references)
            .into()
    }

    /// A message on its way in.
    pub(in crate::wire::a2a) fn message_in(&self, mut fields: Fields) -> Result<Message, Failure> {
        self.check_kind(&mut fields, "message")?;
        let message_id = fields.needed("messageId")?;
        let role = self.role_of(&mut fields)?;
        let parts = self.parts_in(&mut fields, self.parts)?;
        if parts.is_empty() {
            return Err(invalid(format!("`{}` must not be empty", fields.place(self.parts))));
        }
        Ok(Message {
            message_id,
            context_id: fields.word("contextId")?,
            task_id: fields.word("taskId")?,
            role,
            parts,
            metadata: fields.data("metadata")?,
            extensions: fields.words("extensions")?,
            reference_task_ids: if self.references {
                fields.words("referenceTaskIds")?
            } else {
                Vec::new()
            },
        })
    }

    /// An artifact on its way out.
    pub(super) fn artifact_out(&self, artifact: Artifact) -> Value {
        let Artifact { artifact_id, name, description, parts, metadata, extensions } = artifact;
        Object::of("artifactId", artifact_id)
            .some("name", name)
            .some("description", description)
            .with("parts", self.parts_out(parts))
            .data("metadata", metadata)
            .listed("extensions", extensions)
            .into()
    }

    /// An artifact on its way in.
    pub(super) fn artifact_in(&self, mut fields: Fields) -> Result<Artifact, Failure> {
        Ok(Artifact {
            artifact_id: fields.needed("artifactId")?,
            name: fields.word("name")?,
            description: fields.word("description")?,
            parts: self.parts_in(&mut fields, "parts")?,
            metadata: fields.data("metadata")?,
            extensions: fields.words("extensions")?,
        })
    }

    /// A status on its way out.
    pub(in crate::wire::a2a) fn status_out(&self, status: TaskStatus) -> Value {
        let TaskStatus { state, message, timestamp } = status;
        Object::of("state", (self.state)(state))
            .some("message", message.map(|message| self.message_out(message)))
            .with("timestamp", time(timestamp))
            .into()
    }

    /// A status on its way in. One without a time is as old as time.
    pub(super) fn status_in(&self, mut fields: Fields) -> Result<TaskStatus, Failure> {
        let said = match fields.object("message")? {
            None => fields.object("update")?,
            said => said,
        };
        let state = fields.needed("state")?;
        Ok(TaskStatus {
            state: self.state_of(&state, &fields.place("state"))?,
            message: said.map(|said| self.message_in(said)).transpose()?,
            timestamp: fields.time("timestamp")?.unwrap_or_default(),
        })
    }

    /// A task on its way out.
    pub(in crate::wire::a2a) fn task_out(&self, task: Task) -> Value {
        let Task { id, context_id, status, artifacts, history, metadata } = task;
        let artifacts: Vec<_> = artifacts.into_iter().map(|made| self.artifact_out(made)).collect();
        let history: Vec<_> = history.into_iter().map(|said| self.message_out(said)).collect();
        let task = self
            .tagged("task")
            .with("id", id)
            .with("contextId", context_id)
            .with("status", self.status_out(status))
            .data("metadata", metadata);
        match self.tag {
            // Older clients read the lists without asking whether they are there.
            Tag::Kind => task.with("artifacts", artifacts).with("history", history).into(),
            Tag::Member => task.listed("artifacts", artifacts).listed("history", history).into(),
        }
    }

    /// A task on its way in.
    pub(in crate::wire::a2a) fn task_in(&self, mut fields: Fields) -> Result<Task, Failure> {
        self.check_kind(&mut fields, "task")?;
        let status = fields.inner("status")?;
        let artifacts = fields.objects("artifacts")?.into_iter();
        let history = fields.objects("history")?.into_iter();
        Ok(Task {
            id: fields.needed("id")?,
            context_id: fields.text("contextId")?.unwrap_or_default(),
            status: self.status_in(status)?,
            artifacts: artifacts.map(|made| self.artifact_in(made)).collect::<Result<_, _>>()?,
            history: history.map(|said| self.message_in(said)).collect::<Result<_, _>>()?,
            metadata: fields.data("metadata")?,
        })
    }

    fn parts_out(&self, parts: Vec<Part>) -> Vec<Value> {
        parts.into_iter().map(self.part_out).collect()
    }

    fn parts_in(&self, fields: &mut Fields, name: &str) -> Result<Vec<Part>, Failure> {
        fields.objects(name)?.into_iter().map(self.part_in).collect()
    }
}
