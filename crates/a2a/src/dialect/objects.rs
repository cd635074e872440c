//! Conversion of messages, artifacts, statuses and tasks in all JSON dialects.

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use super::{JsonDialect, TagStyle, read_role};
use crate::json_object::{ObjectBuilder, ObjectFields, format_time, invalid_params};
use crate::v1::{A2aPart, Artifact, Message, Task, TaskStatus};

impl JsonDialect {
    /// Writes a message as JSON.
    pub(crate) fn write_message(&self, message: Message) -> Value {
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
        let references =
            if self.writes_reference_task_ids { reference_task_ids } else { Vec::new() };
        self.object_of_kind("message")
            .with_field("messageId", message_id)
            .with_optional_field("contextId", context_id)
            .with_optional_field("taskId", task_id)
            .with_field("role", (self.role_name)(role))
            .with_field(self.parts_member, self.write_parts(parts))
            .with_non_empty_map("metadata", metadata)
            .with_non_empty_list("extensions", extensions)
            .with_non_empty_list("referenceTaskIds", references)
            .into()
    }

    /// Reads a message from JSON.
    pub(crate) fn read_message(&self, mut fields: ObjectFields) -> Result<Message, Failure> {
        self.check_kind(&mut fields, "message")?;
        let message_id = fields.take_required_text("messageId")?;
        let role = read_role(self.role_name, &mut fields)?;
        let parts = self.read_parts(&mut fields, self.parts_member)?;
        // Checked for messages only: an artifact may be the end of one that was streamed, without parts of its own.
        if parts.is_empty() {
            let path = fields.field_path(self.parts_member);
            return Err(invalid_params(format!("`{path}` must not be empty")));
        }
        Ok(Message {
            message_id,
            context_id: fields.take_non_empty_text("contextId")?,
            task_id: fields.take_non_empty_text("taskId")?,
            role,
            parts,
            metadata: fields.take_json_map("metadata")?,
            extensions: fields.take_text_list("extensions")?,
            // 0.3 over HTTP does not define the list, but a caller that sends it expects that it arrives.
            reference_task_ids: fields.take_text_list("referenceTaskIds")?,
        })
    }

    /// Writes an artifact as JSON.
    pub(super) fn write_artifact(&self, artifact: Artifact) -> Value {
        let Artifact { artifact_id, name, description, parts, metadata, extensions } = artifact;
        ObjectBuilder::from_field("artifactId", artifact_id)
            .with_optional_field("name", name)
            .with_optional_field("description", description)
            .with_field("parts", self.write_parts(parts))
            .with_non_empty_map("metadata", metadata)
            .with_non_empty_list("extensions", extensions)
            .into()
    }

    /// Reads an artifact from JSON.
    pub(super) fn read_artifact(&self, mut fields: ObjectFields) -> Result<Artifact, Failure> {
        Ok(Artifact {
            artifact_id: fields.take_required_text("artifactId")?,
            name: fields.take_non_empty_text("name")?,
            description: fields.take_non_empty_text("description")?,
            parts: self.read_parts(&mut fields, "parts")?,
            metadata: fields.take_json_map("metadata")?,
            extensions: fields.take_text_list("extensions")?,
        })
    }

    /// Writes a status as JSON.
    pub(crate) fn write_status(&self, status: TaskStatus) -> Value {
        let TaskStatus { state, message, timestamp } = status;
        ObjectBuilder::from_field("state", (self.state_name)(state))
            .with_optional_field("message", message.map(|message| self.write_message(message)))
            .with_field("timestamp", format_time(timestamp))
            .into()
    }

    /// Reads a status from JSON. A status without a time gets the Unix epoch as its time.
    pub(super) fn read_status(&self, mut fields: ObjectFields) -> Result<TaskStatus, Failure> {
        let message = match fields.take_object("message")? {
            // The `.proto` file of 0.3 names the message of a status `update`.
            None => fields.take_object("update")?,
            message => message,
        };
        let state = fields.take_required_text("state")?;
        Ok(TaskStatus {
            state: self.parse_state(&state, &fields.field_path("state"))?,
            message: message.map(|message| self.read_message(message)).transpose()?,
            timestamp: fields.take_time("timestamp")?.unwrap_or_default(),
        })
    }

    /// Writes a task as JSON.
    pub(crate) fn write_task(&self, task: Task) -> Value {
        let Task { id, context_id, status, artifacts, history, metadata } = task;
        let artifacts: Vec<_> = artifacts.into_iter().map(|it| self.write_artifact(it)).collect();
        let history: Vec<_> = history.into_iter().map(|it| self.write_message(it)).collect();
        let task = self
            .object_of_kind("task")
            .with_field("id", id)
            .with_field("contextId", context_id)
            .with_field("status", self.write_status(status))
            .with_non_empty_map("metadata", metadata);
        match self.tag_style {
            // Older clients read both lists without a check that they exist.
            TagStyle::Internal => {
                task.with_field("artifacts", artifacts).with_field("history", history).into()
            }
            TagStyle::External => task
                .with_non_empty_list("artifacts", artifacts)
                .with_non_empty_list("history", history)
                .into(),
        }
    }

    /// Reads a task from JSON.
    pub(crate) fn read_task(&self, mut fields: ObjectFields) -> Result<Task, Failure> {
        self.check_kind(&mut fields, "task")?;
        let status = fields.take_required_object("status")?;
        let artifacts = fields.take_object_list("artifacts")?.into_iter();
        let history = fields.take_object_list("history")?.into_iter();
        Ok(Task {
            id: fields.take_required_text("id")?,
            // The answer of another service may lack it, and nothing here depends on it.
            context_id: fields.take_text("contextId")?.unwrap_or_default(),
            status: self.read_status(status)?,
            artifacts: artifacts.map(|it| self.read_artifact(it)).collect::<Result<_, _>>()?,
            history: history.map(|message| self.read_message(message)).collect::<Result<_, _>>()?,
            metadata: fields.take_json_map("metadata")?,
        })
    }

    fn write_parts(&self, parts: Vec<A2aPart>) -> Vec<Value> {
        parts.into_iter().map(self.write_part).collect()
    }

    fn read_parts(&self, fields: &mut ObjectFields, name: &str) -> Result<Vec<A2aPart>, Failure> {
        fields.take_object_list(name)?.into_iter().map(self.read_part).collect()
    }
}
