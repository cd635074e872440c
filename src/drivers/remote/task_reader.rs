//! Reader of a remote task: reports its text, artifacts and messages, and finds its end.

use std::collections::BTreeSet;

use algonius_a2a::v1::{
    A2aPart, Artifact, ArtifactUpdate, Message, PartContent, StreamEvent, Task, TaskState,
    TaskStatus,
};
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::content::{Content, Part};
use algonius_actors::model::execution::event::ANSWER_ARTIFACT_ID;
use algonius_actors::ports::ledger::LedgerError;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use super::artifact_losses::RemoteLosses;
use super::conversation::RemoteConversation;
use super::remote_fault::RemoteFault;
use crate::drivers::adapters::event_line::{EventContent, ProgramEvent, ReportedArtifact};
use crate::drivers::adapters::event_reader::{EventReader, EventSummary};
use crate::drivers::adapters::failure::ReportedFailure;
use crate::drivers::output::release_timer::ReleaseTimer;

/// Greatest number of artifacts that are remembered, so that a snapshot does not repeat them.
const MAX_ARTIFACTS: usize = 10_000;

/// End of a remote task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RemoteEnd {
    /// The task reported its outcome, or a question.
    Reported,
    /// The task was cancelled.
    Canceled,
    /// The task goes on without use: it waits for credentials that nobody gives to it.
    AuthRequired,
}

/// State of reading one task.
pub(super) struct TaskReader<'r> {
    event_reader: EventReader<'r>,
    conversation: RemoteConversation,
    /// Id of the remote task, once it is known.
    task_id_sender: watch::Sender<Option<String>>,
    /// Length and hash of the answer's text so far.
    answer_digest: (usize, Sha256),
    reported_artifact_ids: BTreeSet<String>,
    artifact_losses: RemoteLosses,
    /// Id of the latest message of a status.
    last_status_message_id: Option<String>,
    /// True until the first event of a task that is continued: it repeats what was reported before.
    expects_repeated_event: bool,
}

impl<'r> TaskReader<'r> {
    /// Returns a reader of the task that the conversation names, or of a new one.
    pub(super) fn new(event_reader: EventReader<'r>, conversation: RemoteConversation) -> Self {
        let expects_repeated_event = conversation.task.is_some();
        let (answer_digest, task_id_sender) =
            ((0, Sha256::new()), watch::Sender::new(conversation.task.clone()));
        Self {
            event_reader,
            conversation,
            task_id_sender,
            answer_digest,
            reported_artifact_ids: BTreeSet::new(),
            artifact_losses: RemoteLosses::default(),
            last_status_message_id: None,
            expects_repeated_event,
        }
    }

    /// Returns the id of the remote task, once it is known.
    pub(super) fn task_id_receiver(&self) -> watch::Receiver<Option<String>> {
        self.task_id_sender.subscribe()
    }

    /// Returns the remote task and context, as far as they are known.
    pub(super) const fn conversation(&self) -> &RemoteConversation {
        &self.conversation
    }

    /// Returns a timer for the release of text.
    pub(super) fn release_timer(&self) -> ReleaseTimer {
        self.event_reader.release_timer()
    }

    /// Releases the text that can be shown, although more will follow.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn release_visible_text(&mut self) -> Result<(), LedgerError> {
        self.event_reader.release_visible_text().await
    }

    /// Reports a failed call as the failure of the attempt.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn report_fault(&mut self, fault: &RemoteFault) -> Result<(), LedgerError> {
        self.event_reader.handle_event(ProgramEvent::Failed(fault.to_failure())).await
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn close(mut self) -> Result<EventSummary, LedgerError> {
        for warning in self.artifact_losses.into_warnings() {
            self.event_reader.warn(&warning).await?;
        }
        self.event_reader.close().await
    }

    /// Takes the next event. Returns the end of the task, if it is one.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn handle_event(
        &mut self,
        event: StreamEvent,
    ) -> Result<Option<RemoteEnd>, LedgerError> {
        match event {
            StreamEvent::Task(task) => self.handle_snapshot(task).await,
            StreamEvent::Message(message) => {
                self.conversation.context =
                    message.context_id.clone().or(self.conversation.context.take());
                let content = message_content(message);
                self.event_reader.handle_event(ProgramEvent::Message { content }).await?;
                Ok(Some(RemoteEnd::Reported))
            }
            StreamEvent::Status(update) => {
                self.expects_repeated_event = false;
                self.set_ids(update.task_id, update.context_id);
                self.handle_status(update.status).await
            }
            StreamEvent::Artifact(update) => {
                self.expects_repeated_event = false;
                self.set_ids(update.task_id.clone(), update.context_id.clone());
                self.handle_artifact(update).await?;
                Ok(None)
            }
        }
    }

    /// Takes the whole task, of which a part may be reported already.
    async fn handle_snapshot(&mut self, task: Task) -> Result<Option<RemoteEnd>, LedgerError> {
        let Task { id, context_id, status, artifacts, .. } = task;
        self.set_ids(id.clone(), context_id.clone());
        if std::mem::take(&mut self.expects_repeated_event) && !status.state.is_terminal() {
            // The question that the message answers, and the artifacts before it.
            self.reported_artifact_ids
                .extend(artifacts.into_iter().map(|artifact| artifact.artifact_id));
            return Ok(None);
        }
        for artifact in artifacts {
            let is_answer = artifact.artifact_id == ANSWER_ARTIFACT_ID && is_text(&artifact);
            if is_answer || !self.reported_artifact_ids.contains(&artifact.artifact_id) {
                let (task_id, context_id) = (id.clone(), context_id.clone());
                let (append, last_chunk, metadata) = (false, true, Default::default());
                let update =
                    ArtifactUpdate { task_id, context_id, artifact, append, last_chunk, metadata };
                self.handle_artifact(update).await?;
            }
        }
        self.handle_status(status).await
    }

    fn set_ids(&mut self, task: String, context: String) {
        self.conversation.task = Some(task).filter(|task| !task.is_empty());
        self.conversation.context = Some(context).filter(|context| !context.is_empty());
        self.task_id_sender.send_if_modified(|known| {
            let is_new = *known != self.conversation.task;
            known.clone_from(&self.conversation.task);
            is_new
        });
    }

    async fn handle_artifact(&mut self, update: ArtifactUpdate) -> Result<(), LedgerError> {
        let ArtifactUpdate { artifact, append, last_chunk, .. } = update;
        self.artifact_losses.record(&artifact, append);
        if artifact.artifact_id == ANSWER_ARTIFACT_ID && is_text(&artifact) {
            return self.handle_answer(artifact, append).await;
        }
        let Artifact { artifact_id, name, description, parts, .. } = artifact;
        if parts.is_empty() && !last_chunk {
            return Ok(());
        }
        if self.reported_artifact_ids.len() < MAX_ARTIFACTS {
            self.reported_artifact_ids.insert(artifact_id.clone());
        }
        let content = EventContent::Parts(parts.into_iter().map(from_a2a_part).collect());
        let (id, last) = (Some(artifact_id), last_chunk);
        let reported = ReportedArtifact { id, name, description, content, append, last };
        self.event_reader.handle_event(ProgramEvent::Artifact(reported)).await
    }

    /// Reports the new text of the answer. A text that is not appended repeats the text so far, or replaces it: the
    /// remote agent has started its answer anew.
    async fn handle_answer(&mut self, artifact: Artifact, append: bool) -> Result<(), LedgerError> {
        let texts = artifact.parts.into_iter().filter_map(|part| match part.content {
            PartContent::Text(text) => Some(text),
            _ => None,
        });
        let text: String = texts.collect();
        let (length, hash) = &mut self.answer_digest;
        let new_text = if append {
            text.as_str()
        } else {
            // A hash instead of the text: an answer may be as long as the limit of the output.
            let prefix_digest = text.get(..*length).map(Sha256::digest);
            if prefix_digest != Some(hash.clone().finalize()) {
                (*length, *hash) = (0, Sha256::new());
                self.event_reader.handle_event(ProgramEvent::DraftSuperseded).await?;
            }
            text.get(*length..).unwrap_or_default()
        };
        if new_text.is_empty() {
            return Ok(());
        }
        *length += new_text.len();
        hash.update(new_text);
        self.event_reader.handle_event(ProgramEvent::DraftText { text: new_text.to_owned() }).await
    }

    async fn handle_status(
        &mut self,
        status: TaskStatus,
    ) -> Result<Option<RemoteEnd>, LedgerError> {
        let TaskStatus { state, message, .. } = status;
        let id = message.as_ref().map(|message| message.message_id.clone());
        // Each snapshot of the task repeats the message of its status.
        let is_new = id.is_some() && self.last_status_message_id != id;
        self.last_status_message_id = id.or(self.last_status_message_id.take());
        let text = message.as_ref().map(single_line_text).unwrap_or_default();
        let has_too_many_hops = message.as_ref().is_some_and(reports_too_many_hops);
        let content = message.map(message_content);
        let (event, end) = match state {
            TaskState::Submitted | TaskState::Working => {
                let content = content.filter(|_| is_new);
                (content.map(|content| status_event("working", content)), None)
            }
            TaskState::Completed => (
                content.map(|content| status_event("completed", content)),
                Some(RemoteEnd::Reported),
            ),
            TaskState::InputRequired => {
                let default_question =
                    || EventContent::text("the remote agent needs further input".to_owned());
                let content = Some(content.unwrap_or_else(default_question));
                (Some(ProgramEvent::InputRequired { content }), Some(RemoteEnd::Reported))
            }
            TaskState::Rejected => {
                (Some(ProgramEvent::Rejected { message: text }), Some(RemoteEnd::Reported))
            }
            TaskState::Failed => {
                let code_override = has_too_many_hops.then_some(Code::TooManyHops);
                let reported =
                    ReportedFailure { message: text, code_override, ..ReportedFailure::default() };
                (Some(ProgramEvent::Failed(reported)), Some(RemoteEnd::Reported))
            }
            TaskState::Canceled => {
                let text = "the task was canceled at the remote service".to_owned();
                (Some(failure_event("", text)), Some(RemoteEnd::Canceled))
            }
            TaskState::AuthRequired => {
                let text = format!("the remote agent requires authentication: {text}");
                let text = text.trim_end_matches([':', ' ']).to_owned();
                (Some(failure_event("authentication", text)), Some(RemoteEnd::AuthRequired))
            }
        };
        if matches!(state, TaskState::Completed | TaskState::InputRequired) {
            self.event_reader.handle_event(ProgramEvent::DraftAccepted).await?;
        }
        if let Some(event) = event {
            self.event_reader.handle_event(event).await?;
        }
        Ok(end)
    }
}

/// Returns true if the service of the remote agent states that too many services passed the message on.
fn reports_too_many_hops(message: &Message) -> bool {
    message.metadata.get("code").and_then(Value::as_str) == Some(Code::TooManyHops.as_str())
}

fn failure_event(category: &str, message: String) -> ProgramEvent {
    let category = category.to_owned();
    ProgramEvent::Failed(ReportedFailure { message, category, ..ReportedFailure::default() })
}

fn status_event(state: &str, content: EventContent) -> ProgramEvent {
    ProgramEvent::Status { state: state.to_owned(), content: Some(content) }
}

/// Returns true if the artifact consists of text without names.
fn is_text(artifact: &Artifact) -> bool {
    let is_plain =
        |part: &A2aPart| matches!(part.content, PartContent::Text(_)) && part.filename.is_none();
    artifact.parts.iter().all(is_plain)
}

fn message_content(message: Message) -> EventContent {
    EventContent::Parts(message.parts.into_iter().map(from_a2a_part).collect())
}

/// Returns the content of a message in one line. Of files it has only their names.
fn single_line_text(message: &Message) -> String {
    let texts = message.parts.iter().filter_map(|part| match &part.content {
        PartContent::Text(text) | PartContent::Url(text) => Some(text.clone()),
        PartContent::Data(data) => Some(data.to_string()),
        PartContent::Raw(_) => part.filename.clone(),
    });
    texts.collect::<Vec<_>>().join(" ")
}

fn from_a2a_part(part: A2aPart) -> Part {
    let A2aPart { content, filename, media_type, .. } = part;
    let content = match content {
        PartContent::Text(text) => Content::Text(text),
        PartContent::Raw(bytes) => Content::Bytes(bytes),
        PartContent::Url(url) => Content::Url(url),
        PartContent::Data(data) => Content::Data(data),
    };
    Part { content, filename, media_type }
}

#[cfg(test)]
mod tests {
    use algonius_a2a::v1::{Metadata, Role};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reason_has_all_parts_of_its_message() {
        let part = |content, filename: Option<&str>| A2aPart {
            content,
            filename: filename.map(str::to_owned),
            media_type: None,
            metadata: Metadata::new(),
        };
        let message = Message {
            message_id: "m".to_owned(),
            context_id: None,
            task_id: None,
            role: Role::Agent,
            parts: vec![
                part(PartContent::Text("sign in".to_owned()), None),
                part(PartContent::Url("https://a.example".to_owned()), None),
                part(PartContent::Data(json!({"code": "E42"})), None),
                part(PartContent::Raw("aGk=".to_owned()), Some("log.txt")),
            ],
            metadata: Metadata::new(),
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        };
        assert_eq!(
            single_line_text(&message),
            r#"sign in https://a.example {"code":"E42"} log.txt"#
        );
    }
}
