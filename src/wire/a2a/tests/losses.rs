//! What gets lost when a core shape is told in a dialect and heard again: all that is known to, and
//! nothing else. The checks of the fuzzers know it from here.

use serde_json::json;

use super::wire::a2a::v1::{
    Artifact, ArtifactUpdate, Content, Message, Part, StatusUpdate, StreamEvent, Task, TaskStatus,
};

/// What a dialect loses of a part, a message and an update.
#[derive(Clone, Copy)]
pub(super) struct Losses {
    part: fn(Part) -> Part,
    references: bool,
    finals: bool,
}

/// Nothing; but only 1.0 says the end of a stream by ending it.
pub(super) const OF_1_0: Losses = Losses { part: |part| part, references: false, finals: true };
pub(super) const OF_0_3: Losses = Losses { part: in_0_3, references: false, finals: false };
pub(super) const OF_REST: Losses = Losses { part: in_0_3, references: true, finals: false };

fn in_0_3(part: Part) -> Part {
    match part.content {
        Content::Text(_) => Part { filename: None, media_type: None, ..part },
        Content::Data(data) if data.is_object() => {
            Part { content: Content::Data(data), filename: None, media_type: None, ..part }
        }
        Content::Data(data) => {
            let content = Content::Data(json!({"value": data}));
            Part { content, filename: None, media_type: None, ..part }
        }
        Content::Raw(_) | Content::Url(_) => part,
    }
}

impl Losses {
    fn message(self, message: Message) -> Message {
        let parts = message.parts.into_iter().map(self.part).collect();
        let kept = if self.references { Vec::new() } else { message.reference_task_ids };
        Message { parts, reference_task_ids: kept, ..message }
    }

    fn artifact(self, artifact: Artifact) -> Artifact {
        let parts = artifact.parts.into_iter().map(self.part).collect();
        Artifact { parts, ..artifact }
    }

    fn status(self, status: TaskStatus) -> TaskStatus {
        let message = status.message.map(|message| self.message(message));
        TaskStatus { message, ..status }
    }

    fn task(self, task: Task) -> Task {
        Task {
            status: self.status(task.status),
            artifacts: task.artifacts.into_iter().map(|made| self.artifact(made)).collect(),
            history: task.history.into_iter().map(|said| self.message(said)).collect(),
            ..task
        }
    }

    pub(super) fn event(self, event: StreamEvent) -> StreamEvent {
        match event {
            StreamEvent::Task(task) => StreamEvent::Task(self.task(task)),
            StreamEvent::Message(message) => StreamEvent::Message(self.message(message)),
            StreamEvent::Artifact(update) => {
                let artifact = self.artifact(update.artifact);
                StreamEvent::Artifact(ArtifactUpdate { artifact, ..update })
            }
            StreamEvent::Status(update) => {
                let ends = update.status.state.is_terminal();
                let is_final = if self.finals { ends } else { update.is_final };
                let status = self.status(update.status);
                StreamEvent::Status(StatusUpdate { status, is_final, ..update })
            }
        }
    }
}
