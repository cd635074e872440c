//! Conversion of messages, artifacts, statuses and tasks in all JSON dialects.

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::{JsonDialect, TagStyle};
use crate::json_object::{ObjectBuilder, ObjectFields, invalid, time};
use crate::v1::{A2aPart, Artifact, Message, Task, TaskStatus};

impl JsonDialect {
    /// Writes a message as JSON.
    pub(crate) fn message_out(&self, message: Message) -> Value {
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
        self.object_of_kind("message")
            .with("messageId", message_id)
            .some("contextId", context_id)
            .some("taskId", task_id)
            .with("role", (self.role)(role))
            .with(self.parts, self.parts_out(parts))
            .data("metadata", metadata)
            .with_list("extensions", extensions)
            .with_list("referenceTaskIds", references)
            .into()
    }

    /// Reads a message from JSON.
    pub(crate) fn message_in(&self, mut fields: ObjectFields) -> Result<Message, Failure> {
        self.check_kind(&mut fields, "message")?;
        let message_id = fields.required("messageId")?;
        let role = self.role_of(&mut fields)?;
        let parts = self.parts_in(&mut fields, self.parts)?;
        // Checked for messages only: an artifact may be the end of one that was streamed, without parts of its own.
        if parts.is_empty() {
            return Err(invalid(format!("`{}` must not be empty", fields.field_path(self.parts))));
        }
        Ok(Message {
            message_id,
            context_id: fields.string("contextId")?,
            task_id: fields.string("taskId")?,
            role,
            parts,
            metadata: fields.data("metadata")?,
            extensions: fields.strings("extensions")?,
            reference_task_ids: if self.references {
                fields.strings("referenceTaskIds")?
            } else {
                Vec::new()
            },
        })
    }

    /// Writes an artifact as JSON.
    pub(super) fn artifact_out(&self, artifact: Artifact) -> Value {
        let Artifact { artifact_id, name, description, parts, metadata, extensions } = artifact;
        ObjectBuilder::of("artifactId", artifact_id)
            .some("name", name)
            .some("description", description)
            .with("parts", self.parts_out(parts))
            .data("metadata", metadata)
            .with_list("extensions", extensions)
            .into()
    }

    /// Reads an artifact from JSON.
    pub(super) fn artifact_in(&self, mut fields: ObjectFields) -> Result<Artifact, Failure> {
        Ok(Artifact {
            artifact_id: fields.required("artifactId")?,
            name: fields.string("name")?,
            description: fields.string("description")?,
            parts: self.parts_in(&mut fields, "parts")?,
            metadata: fields.data("metadata")?,
            extensions: fields.strings("extensions")?,
        })
    }

    /// Writes a status as JSON.
    pub(crate) fn status_out(&self, status: TaskStatus) -> Value {
        let TaskStatus { state, message, timestamp } = status;
        ObjectBuilder::of("state", (self.state)(state))
            .some("message", message.map(|message| self.message_out(message)))
            .with("timestamp", time(timestamp))
            .into()
    }

    /// Reads a status from JSON. A status without a time gets the Unix epoch as its time.
    pub(super) fn status_in(&self, mut fields: ObjectFields) -> Result<TaskStatus, Failure> {
        let message = match fields.object("message")? {
            // The `.proto` file of 0.3 names the message of a status `update`.
            None => fields.object("update")?,
            message => message,
        };
        let state = fields.required("state")?;
        Ok(TaskStatus {
            state: self.state_of(&state, &fields.field_path("state"))?,
            message: message.map(|message| self.message_in(message)).transpose()?,
            timestamp: fields.time("timestamp")?.unwrap_or_default(),
        })
    }

    /// Writes a task as JSON.
    pub(crate) fn task_out(&self, task: Task) -> Value {
        let Task { id, context_id, status, artifacts, history, metadata } = task;
        let artifacts: Vec<_> = artifacts.into_iter().map(|it| self.artifact_out(it)).collect();
        let history: Vec<_> = history.into_iter().map(|it| self.message_out(it)).collect();
        let task = self
            .object_of_kind("task")
            .with("id", id)
            .with("contextId", context_id)
            .with("status", self.status_out(status))
            .data("metadata", metadata);
        match self.tag {
            // Older clients read both lists without a check that they exist.
            TagStyle::Field => task.with("artifacts", artifacts).with("history", history).into(),
            TagStyle::Member => {
                task.with_list("artifacts", artifacts).with_list("history", history).into()
            }
        }
    }

    /// Reads a task from JSON.
    pub(crate) fn task_in(&self, mut fields: ObjectFields) -> Result<Task, Failure> {
        self.check_kind(&mut fields, "task")?;
        let status = fields.required_object("status")?;
        let artifacts = fields.objects("artifacts")?.into_iter();
        let history = fields.objects("history")?.into_iter();
        Ok(Task {
            id: fields.required("id")?,
            // The answer of another service may lack it, and nothing here depends on it.
            context_id: fields.text("contextId")?.unwrap_or_default(),
            status: self.status_in(status)?,
            artifacts: artifacts.map(|it| self.artifact_in(it)).collect::<Result<_, _>>()?,
            history: history.map(|message| self.message_in(message)).collect::<Result<_, _>>()?,
            metadata: fields.data("metadata")?,
        })
    }

    fn parts_out(&self, parts: Vec<A2aPart>) -> Vec<Value> {
        parts.into_iter().map(self.part_out).collect()
    }

    fn parts_in(&self, fields: &mut ObjectFields, name: &str) -> Result<Vec<A2aPart>, Failure> {
        fields.objects(name)?.into_iter().map(self.part_in).collect()
    }
}
