//! Losses of a core shape that a dialect writes and reads again: the complete list of the permitted ones. The fuzz
//! targets use the same list.

use serde_json::json;

use super::v1::{
    A2aPart, Artifact, ArtifactUpdate, Message, PartContent, StatusUpdate, StreamEvent, Task,
    TaskStatus,
};

/// Losses of a dialect in a part, a message and an update.
#[derive(Clone, Copy)]
pub(super) struct DialectLosses {
    apply_to_part: fn(A2aPart) -> A2aPart,
    drops_references: bool,
    drops_final: bool,
}

/// Losses of 1.0: none, except that 1.0 marks the end of a stream only by ending it.
pub(super) const LOSSES_1_0: DialectLosses =
    DialectLosses { apply_to_part: |part| part, drops_references: false, drops_final: true };
pub(super) const LOSSES_0_3: DialectLosses = DialectLosses {
    apply_to_part: apply_0_3_part_losses,
    drops_references: false,
    drops_final: false,
};
pub(super) const LOSSES_0_3_REST: DialectLosses = DialectLosses {
    apply_to_part: apply_0_3_part_losses,
    drops_references: true,
    drops_final: false,
};

fn apply_0_3_part_losses(part: A2aPart) -> A2aPart {
    match part.content {
        PartContent::Text(_) => A2aPart { filename: None, media_type: None, ..part },
        PartContent::Data(data) if data.is_object() => {
            A2aPart { content: PartContent::Data(data), filename: None, media_type: None, ..part }
        }
        PartContent::Data(data) => {
            let content = PartContent::Data(json!({"value": data}));
            A2aPart { content, filename: None, media_type: None, ..part }
        }
        PartContent::Raw(_) | PartContent::Url(_) => part,
    }
}

impl DialectLosses {
    fn apply_to_message(self, message: Message) -> Message {
        let parts = message.parts.into_iter().map(self.apply_to_part).collect();
        let reference_task_ids =
            if self.drops_references { Vec::new() } else { message.reference_task_ids };
        Message { parts, reference_task_ids, ..message }
    }

    fn apply_to_artifact(self, artifact: Artifact) -> Artifact {
        let parts = artifact.parts.into_iter().map(self.apply_to_part).collect();
        Artifact { parts, ..artifact }
    }

    fn apply_to_status(self, status: TaskStatus) -> TaskStatus {
        let message = status.message.map(|message| self.apply_to_message(message));
        TaskStatus { message, ..status }
    }

    fn apply_to_task(self, task: Task) -> Task {
        Task {
            status: self.apply_to_status(task.status),
            artifacts: task
                .artifacts
                .into_iter()
                .map(|artifact| self.apply_to_artifact(artifact))
                .collect(),
            history: task
                .history
                .into_iter()
                .map(|message| self.apply_to_message(message))
                .collect(),
            ..task
        }
    }

    pub(super) fn apply_to_event(self, event: StreamEvent) -> StreamEvent {
        match event {
            StreamEvent::Task(task) => StreamEvent::Task(self.apply_to_task(task)),
            StreamEvent::Message(message) => StreamEvent::Message(self.apply_to_message(message)),
            StreamEvent::Artifact(update) => {
                let artifact = self.apply_to_artifact(update.artifact);
                StreamEvent::Artifact(ArtifactUpdate { artifact, ..update })
            }
            StreamEvent::Status(update) => {
                let is_terminal = update.status.state.is_terminal();
                let is_final = if self.drops_final { is_terminal } else { update.is_final };
                let status = self.apply_to_status(update.status);
                StreamEvent::Status(StatusUpdate { status, is_final, ..update })
            }
        }
    }
}
