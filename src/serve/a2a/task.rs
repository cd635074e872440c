//! An execution as an A2A task: one internal state machine, with total mappings to the shapes of the protocol.

pub mod artifact;
pub mod attempt_warnings;
mod history;
mod service_messages;
pub mod updates;

use std::collections::BTreeMap;

use algonius_a2a::REDACTED_MEMBER;
use algonius_a2a::v1::{
    A2aPart, Artifact, HistoryLength, Message, Metadata, PartContent, Role, Task, TaskState,
    TaskStatus,
};
use algonius_actors::api::Api;
use algonius_actors::model::agent::queue::Queued;
use algonius_actors::model::execution::content::{PartKind, StoredPart};
use algonius_actors::model::execution::event::{
    ANSWER_ARTIFACT_ID, Event, EventKind, MessageRole, TextChannel,
};
use algonius_actors::model::execution::progress::RawAnswer;
use algonius_actors::model::execution::record::{ExecutionRecord, PublicState};
use algonius_actors::model::execution::{AttemptId, ExecutionState, Outcome};
use algonius_actors::model::failure::Failure;
use serde_json::Value;
use service_messages::{
    CONTINUITY_KEY, CONTINUITY_LOST, auth_required_message, failure_message, interaction_message,
    new_message,
};

use artifact::{ArtifactLosses, append_parts, build_artifact};
use attempt_warnings::AttemptWarnings;
pub use service_messages::{
    deadline_message, queue_message, session_lost_message, warning_message,
};

/// Key in the metadata of an ended task for the warnings of its last attempt.
const WARNINGS_KEY: &str = "warnings";

/// Returns the state of the task for the state and the outcome of an execution.
#[must_use]
pub fn task_state(record: &ExecutionRecord) -> TaskState {
    match record.public_state() {
        PublicState::Submitted => TaskState::Submitted,
        PublicState::Working => TaskState::Working,
        PublicState::InputRequired => TaskState::InputRequired,
        PublicState::AuthRequired => TaskState::AuthRequired,
        PublicState::Completed => TaskState::Completed,
        PublicState::Canceled => TaskState::Canceled,
        PublicState::Failed => TaskState::Failed,
        PublicState::Rejected => TaskState::Rejected,
    }
}

/// Returns the public state of executions for the state of a task.
#[must_use]
pub const fn public_state(state: TaskState) -> PublicState {
    match state {
        TaskState::Submitted => PublicState::Submitted,
        TaskState::Working => PublicState::Working,
        TaskState::InputRequired => PublicState::InputRequired,
        TaskState::AuthRequired => PublicState::AuthRequired,
        TaskState::Completed => PublicState::Completed,
        TaskState::Canceled => PublicState::Canceled,
        TaskState::Failed => PublicState::Failed,
        TaskState::Rejected => PublicState::Rejected,
    }
}

/// Execution as read at one moment, for the conversion into a task.
pub struct TaskView<'r> {
    api: &'r Api,
    record: &'r ExecutionRecord,
    events: Vec<Event>,
    queue_position: Option<Queued>,
}

impl<'r> TaskView<'r> {
    /// Reads the events up to the last one of the record, and nothing later.
    ///
    /// # Errors
    /// Fails if the ledger cannot be read.
    pub async fn read(api: &'r Api, record: &'r ExecutionRecord) -> Result<Self, Failure> {
        let mut events = api.reader.events(record, 0).await?;
        // The record was read before the events. Later events would show a state that the record does not have yet.
        events.retain(|event| event.number <= record.last_event_number);
        let queued = api.reader.queue_position(record).await;
        Ok(Self { api, record, events, queue_position: queued })
    }

    /// Returns the task with the raw text of its answer, if that answer is the one shown.
    #[must_use]
    pub fn insert_raw_answer(&self, raw_answer: Option<RawAnswer>, mut task: Task) -> Task {
        let answer =
            task.artifacts.iter_mut().find(|artifact| artifact.artifact_id == ANSWER_ARTIFACT_ID);
        // The raw text belongs to one attempt. A later attempt, or an artifact of the agent itself, has another text.
        let raw_answer = raw_answer.filter(|raw_answer| {
            raw_answer.attempt_id == self.record.attempt_id && !self.has_agent_answer_artifact()
        });
        if let (Some(answer), Some(raw_answer)) = (answer, raw_answer)
            && let [A2aPart { content: PartContent::Text(text), .. }] = answer.parts.as_mut_slice()
        {
            raw_answer.text.as_ref().clone_into(text);
            answer.metadata.remove(REDACTED_MEMBER);
        }
        task
    }

    /// True if the agent itself created an artifact with the id of the answer.
    fn has_agent_answer_artifact(&self) -> bool {
        let is_from_agent = |part: &StoredPart| part.text.channel == TextChannel::Parts;
        self.events.iter().any(|event| match &event.data {
            EventKind::Artifact { id, pieces, .. } => {
                id == ANSWER_ARTIFACT_ID && pieces.iter().any(is_from_agent)
            }
            _ => false,
        })
    }

    /// Returns the events about the valid artifacts, in order. Artifacts of failed attempts are only in the list of
    /// events.
    pub fn artifact_events(&self) -> impl Iterator<Item = &Event> {
        let attempts = last_attempt_by_turn(&self.events);
        self.events.iter().filter(move |event| {
            let EventKind::Artifact { pieces, .. } = &event.data else { return false };
            let attempt_id = pieces.first().map(|piece| piece.text.attempt_id);
            attempt_id.is_some_and(|attempt_id| {
                attempts.get(&attempt_id.turn) == Some(&attempt_id.attempt)
            })
        })
    }

    /// Returns the whole task.
    ///
    /// # Errors
    /// Fails if the ledger cannot be read.
    pub async fn task(&self, history_length: HistoryLength) -> Result<Task, Failure> {
        let artifacts = self.artifacts().await?;
        Ok(Task { artifacts, ..self.task_without_artifacts(history_length).await? })
    }

    /// Returns the task without its artifacts.
    ///
    /// # Errors
    /// Fails if the ledger cannot be read.
    pub async fn task_without_artifacts(
        &self,
        history_length: HistoryLength,
    ) -> Result<Task, Failure> {
        Ok(Task {
            id: self.record.id.to_string(),
            context_id: self.record.context.0.clone(),
            status: self.status().await?,
            artifacts: Vec::new(),
            history: self.history(history_length).await?,
            metadata: self.end_metadata(),
        })
    }

    /// Returns the status of the task with its message.
    ///
    /// # Errors
    /// Fails if the ledger cannot be read.
    pub async fn status(&self) -> Result<TaskStatus, Failure> {
        let state = task_state(self.record);
        let message = match &self.record.failure {
            Some(failure) if state.is_terminal() => Some(failure_message(self.record, failure)),
            _ => match self.queue_position {
                Some(queued) => Some(queue_message(self.record, queued)),
                None => self.status_message(state).await?,
            },
        };
        let timestamp = self.record.status_changed_at();
        Ok(TaskStatus { state, message, timestamp })
    }

    /// Returns metadata with the warnings of the last attempt and whether the agent lost the context of its
    /// conversation; empty before the task has ended.
    #[must_use]
    pub fn end_metadata(&self) -> Metadata {
        if !task_state(self.record).is_terminal() {
            return Metadata::new();
        }
        let mut warnings = AttemptWarnings::default();
        let mut is_session_lost = false;
        for event in &self.events {
            match &event.data {
                // Warnings of an attempt that was retried no longer apply.
                EventKind::StateChanged(change) if change.to == ExecutionState::Starting => {
                    warnings = AttemptWarnings::default();
                }
                EventKind::Warning { message } => warnings.push(message.clone()),
                EventKind::OutputTruncated { channel: TextChannel::Parts, dropped } => {
                    let message = "bytes of messages and artifacts of the agent were not stored";
                    warnings.push(format!("{dropped} {message}"));
                }
                EventKind::SessionLost { .. } => is_session_lost = true,
                _ => {}
            }
        }
        let warnings = warnings.into_sentences();
        let warnings = (!warnings.is_empty()).then(|| (WARNINGS_KEY.to_owned(), warnings.into()));
        let continuity =
            is_session_lost.then(|| (CONTINUITY_KEY.to_owned(), CONTINUITY_LOST.into()));
        warnings.into_iter().chain(continuity).collect()
    }

    /// Returns the queue position, if the execution waits.
    #[must_use]
    pub const fn queue_position(&self) -> Option<Queued> {
        self.queue_position
    }

    /// Returns the answer without a task, if the agent gave only a message.
    ///
    /// # Errors
    /// Fails if the ledger cannot be read.
    pub async fn message_only_reply(&self) -> Result<Option<Message>, Failure> {
        // A message cannot carry artifacts, so an agent that made one is answered with its task.
        let has_artifact =
            self.events.iter().any(|event| matches!(event.data, EventKind::Artifact { .. }));
        if has_artifact || self.record.outcome != Some(Outcome::Completed) {
            return Ok(None);
        }
        let message = self.last_attempt_message_by(MessageRole::AgentAnswer).await?;
        Ok(message.map(|message| Message { task_id: None, ..message }))
    }

    /// Returns the agent's latest message that belongs to this state.
    async fn status_message(&self, state: TaskState) -> Result<Option<Message>, Failure> {
        match state {
            TaskState::InputRequired if self.record.has_open_interactions() => {
                let open_interactions =
                    self.api.interactions.open_interactions(self.record).await?;
                Ok(interaction_message(self.record, &open_interactions))
            }
            TaskState::InputRequired => self.open_question().await,
            // The protocol requires a message with this state. The agent's own message may be missing if it exceeded
            // a limit.
            TaskState::AuthRequired => {
                let agent_message = self.open_question().await?;
                Ok(Some(agent_message.unwrap_or_else(|| auth_required_message(self.record))))
            }
            TaskState::Working => self.last_message_by(MessageRole::AgentProgress).await,
            TaskState::Completed => {
                match self.last_attempt_message_by(MessageRole::AgentAnswer).await? {
                    Some(message) => Ok(Some(message)),
                    None => self.last_attempt_message_by(MessageRole::AgentOutcome).await,
                }
            }
            TaskState::Submitted
            | TaskState::Canceled
            | TaskState::Failed
            | TaskState::Rejected => Ok(None),
        }
    }

    /// Returns what the agent requests in the latest turn. A request of an earlier turn was answered.
    async fn open_question(&self) -> Result<Option<Message>, Failure> {
        for event in self.events.iter().rev() {
            match &event.data {
                // A message of the caller answers every request before it.
                EventKind::Message { speaker: MessageRole::User, .. } => break,
                EventKind::Message {
                    speaker: MessageRole::AgentQuestion, message, pieces, ..
                } => {
                    let (api, speaker) = (self.api, MessageRole::AgentQuestion);
                    return recorded_message(api, self.record, speaker, message, pieces)
                        .await
                        .map(Some);
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Returns the latest message of the last attempt: those of failed attempts and earlier turns are no answer.
    async fn last_attempt_message_by(&self, role: MessageRole) -> Result<Option<Message>, Failure> {
        let last_attempt = self.record.attempt_id;
        let is_of_last_attempt = |parts: &[StoredPart]| {
            parts.first().is_none_or(|piece| piece.text.attempt_id == last_attempt)
        };
        self.last_message(role, is_of_last_attempt).await
    }

    async fn last_message_by(&self, role: MessageRole) -> Result<Option<Message>, Failure> {
        self.last_message(role, |_| true).await
    }

    /// Returns the latest message of a speaker whose pieces pass a filter.
    async fn last_message(
        &self,
        role: MessageRole,
        is_wanted: impl Fn(&[StoredPart]) -> bool,
    ) -> Result<Option<Message>, Failure> {
        for event in self.events.iter().rev() {
            if let EventKind::Message { speaker, message, pieces, .. } = &event.data
                && *speaker == role
                && is_wanted(pieces)
            {
                let message_future = recorded_message(self.api, self.record, role, message, pieces);
                return message_future.await.map(Some);
            }
        }
        Ok(None)
    }

    /// Returns the artifacts, each with all its pieces.
    async fn artifacts(&self) -> Result<Vec<Artifact>, Failure> {
        let mut artifacts: Vec<Artifact> = Vec::new();
        for event in self.artifact_events() {
            let EventKind::Artifact { id, name, description, pieces, append, .. } = &event.data
            else {
                continue;
            };
            let losses = ArtifactLosses::from_parts(pieces);
            let parts = read_parts(self.api, self.record, pieces).await?;
            let existing = artifacts.iter_mut().find(|existing| existing.artifact_id == *id);
            match existing {
                Some(existing) if *append => append_parts(existing, parts, losses),
                // Without `append` an artifact with a known id replaces the one before.
                Some(existing) => (existing.parts, existing.metadata) = (parts, losses.metadata()),
                None => {
                    let (name, description) = (name.clone(), description.clone());
                    artifacts.push(build_artifact(id, name, description, (parts, losses)));
                }
            }
        }
        Ok(artifacts)
    }
}

/// Returns the valid attempt of each turn: its last.
fn last_attempt_by_turn(events: &[Event]) -> BTreeMap<u32, u32> {
    let mut attempts = BTreeMap::new();
    for event in events {
        if let EventKind::StateChanged(change) = &event.data {
            let AttemptId { turn, attempt } = change.attempt_id;
            attempts.insert(turn, attempt);
        }
    }
    attempts
}

/// Returns parts with the texts from the ledger.
///
/// # Errors
/// Fails if the ledger cannot be read.
pub async fn read_parts(
    api: &Api,
    record: &ExecutionRecord,
    stored_parts: &[StoredPart],
) -> Result<Vec<A2aPart>, Failure> {
    let mut parts = Vec::new();
    for stored_part in stored_parts {
        let text = api.reader.text(record, stored_part.text).await?;
        let content = match stored_part.kind {
            PartKind::Text => PartContent::Text(text),
            PartKind::Data => {
                PartContent::Data(serde_json::from_str(&text).unwrap_or(Value::String(text)))
            }
            PartKind::Bytes => PartContent::Raw(text),
            PartKind::Url => PartContent::Url(text),
        };
        let (filename, media_type) = (stored_part.filename.clone(), stored_part.media_type.clone());
        parts.push(A2aPart { content, filename, media_type, metadata: Metadata::new() });
    }
    Ok(parts)
}

/// Returns a message with the redacted texts from the ledger.
///
/// # Errors
/// Fails if the ledger cannot be read.
pub async fn recorded_message(
    api: &Api,
    record: &ExecutionRecord,
    speaker: MessageRole,
    message_id: &str,
    stored_parts: &[StoredPart],
) -> Result<Message, Failure> {
    let role = match speaker {
        MessageRole::User => Role::User,
        MessageRole::AgentProgress
        | MessageRole::AgentQuestion
        | MessageRole::AgentOutcome
        | MessageRole::AgentAnswer => Role::Agent,
    };
    let parts = read_parts(api, record, stored_parts).await?;
    Ok(new_message(record, message_id.to_owned(), role, parts))
}
