//! Events of an execution as updates of its task: the visible ones, and the form of each.

use algonius_a2a::v1::{
    A2aPart, Artifact, ArtifactUpdate, Message, Metadata, StatusUpdate, StreamEvent, TaskState,
    TaskStatus,
};
use algonius_actors::api::Api;
use algonius_actors::model::agent::queue::Queued;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::ExecutionState;
use algonius_actors::model::execution::event::{
    ANSWER_ARTIFACT_ID, Event, EventKind, MessageRole, TextRange,
};
use algonius_actors::model::execution::hop::HopStage;
use algonius_actors::model::execution::record::ExecutionRecord;
use algonius_actors::model::execution::step::StepRecord;
use algonius_actors::model::failure::Failure;
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};

use super::TaskView;
use super::artifact::{ArtifactLosses, build_artifact};

/// Key in the metadata of an update for a piece of the program's standard error.
const STDERR_KEY: &str = "stderr";

/// Converter of events into the updates of one task.
pub struct TaskUpdateBuilder {
    /// Source of texts.
    pub api: Api,
    /// Execution of the task.
    pub record: ExecutionRecord,
    /// Last state that was sent.
    pub sent_state: TaskState,
    /// True if the last update was a position in a queue.
    pub is_showing_queue_position: bool,
    /// True if a question was opened before its execution ran: the member of a team can be faster than its run.
    pub has_question_before_running: bool,
}

/// Returns false if an event is a question that its task no longer shows.
///
/// # Errors
/// Fails if the ledger could not be read, or if the task does not show the question yet, because the member of a team
/// can open a question before its run is recorded as running.
pub async fn is_event_still_visible(
    api: &Api,
    record: &ExecutionRecord,
    number: u64,
) -> Result<bool, Failure> {
    let Some(event) = find_event(api, record, number).await? else { return Ok(true) };
    if !matches!(event.data, EventKind::InteractionOpened { .. }) || record.has_open_interactions()
    {
        return Ok(true);
    }
    if has_question_before_running(record) {
        let message = "the task is not recorded as running yet";
        return Err(Failure::new(Code::LedgerUnavailable, message));
    }
    Ok(false)
}

/// Returns true if an execution has a question and is not recorded as running.
pub const fn has_question_before_running(record: &ExecutionRecord) -> bool {
    record.outcome.is_none()
        && record.requested_input.open_interaction_count > 0
        && !matches!(record.state, ExecutionState::Running)
}

/// Returns the event with a number, if there is one.
async fn find_event(
    api: &Api,
    record: &ExecutionRecord,
    number: u64,
) -> Result<Option<Event>, Failure> {
    // The reader returns the events after a number, so the one before is named.
    let events = api.reader.events(record, number.saturating_sub(1)).await?;
    Ok(events.into_iter().next().filter(|event| event.number == number))
}

/// Returns the update of one event of an execution for notified clients; `None` if the event causes none.
///
/// # Errors
/// Fails when the ledger could not be read.
pub async fn notification_update(
    api: &Api,
    record: &ExecutionRecord,
    number: u64,
) -> Result<Option<StreamEvent>, Failure> {
    let Some(event) = find_event(api, record, number).await? else { return Ok(None) };
    let (api, record) = (api.clone(), record.clone());
    let is_paused = record.has_open_interactions();
    let sent_state = if is_paused { TaskState::InputRequired } else { TaskState::Submitted };
    let mut update_builder = TaskUpdateBuilder {
        api,
        record,
        sent_state,
        is_showing_queue_position: false,
        has_question_before_running: false,
    };
    match &event.data {
        EventKind::StateChanged(change)
            if matches!(change.to, ExecutionState::Cleanup | ExecutionState::Waiting) =>
        {
            let view = TaskView::read(&update_builder.api, &update_builder.record).await?;
            let status = view.status().await?;
            Ok(Some(update_builder.status_event(status, true, view.end_metadata())))
        }
        _ => update_builder.update_for(event).await,
    }
}

impl TaskUpdateBuilder {
    /// Returns the update of an event. Moves within one public state cause no update.
    ///
    /// # Errors
    /// Fails when the ledger could not be read.
    pub async fn update_for(&mut self, event: Event) -> Result<Option<StreamEvent>, Failure> {
        match event.data {
            EventKind::StateChanged(change) if change.to == ExecutionState::Starting => {
                // A retry stays `working`, so its start is no news, unless a queue position was the last thing shown.
                let is_change =
                    self.sent_state != TaskState::Working || self.is_showing_queue_position;
                self.is_showing_queue_position = false;
                self.sent_state = TaskState::Working;
                Ok(is_change.then(|| self.active_status_event(event.at, None)))
            }
            EventKind::Message { speaker: MessageRole::AgentProgress, message, pieces, .. } => {
                let message_future = super::recorded_message(
                    &self.api,
                    &self.record,
                    MessageRole::AgentProgress,
                    &message,
                    &pieces,
                );
                let message = message_future.await?;
                Ok(Some(self.message_event(event.at, message)))
            }
            EventKind::DeadlineApproaching { limit, ends_at, message } => {
                let message = super::deadline_message(&self.record, (limit, ends_at), &message);
                Ok(Some(self.message_event(event.at, message)))
            }
            EventKind::SessionLost { message } => {
                let message = super::session_lost_message(&self.record, &message);
                Ok(Some(self.message_event(event.at, message)))
            }
            EventKind::Warning { message } => {
                let message = super::warning_message(&self.record, (event.number, &message));
                Ok(Some(self.message_event(event.at, message)))
            }
            EventKind::InteractionOpened { .. } | EventKind::InteractionClosed { .. } => {
                self.interaction_event(event.at).await
            }
            EventKind::StateChanged(change)
                if change.to == ExecutionState::Running && self.has_question_before_running =>
            {
                self.interaction_event(event.at).await
            }
            EventKind::Heartbeat(usage) => {
                Ok(Some(self.metadata_event(event.at, ("usage", usage))))
            }
            data @ (EventKind::Step { .. } | EventKind::Hop { .. } | EventKind::RunStep { .. }) => {
                Ok(step_value(&data).map(|step| self.metadata_event(event.at, ("step", step))))
            }
            EventKind::MalformedLine { line, reason, text } => {
                let details = json!({"line": line, "reason": reason, "text": text});
                Ok(Some(self.metadata_event(event.at, ("malformedLine", details))))
            }
            EventKind::Artifact { id, name, description, pieces, append, last } => {
                let losses = ArtifactLosses::from_parts(&pieces);
                let parts = super::read_parts(&self.api, &self.record, &pieces).await?;
                let artifact = build_artifact(&id, name, description, (parts, losses));
                Ok(Some(self.artifact_event(artifact, append, last)))
            }
            _ => Ok(None),
        }
    }

    /// Returns the update after an interaction was opened or closed: the open interactions, or that the agent works
    /// again.
    async fn interaction_event(
        &mut self,
        at: DateTime<Utc>,
    ) -> Result<Option<StreamEvent>, Failure> {
        // Only the present state counts: a client cannot answer an interaction that was closed meanwhile.
        let record = self.api.reader.reread(&self.record).await?;
        self.has_question_before_running = has_question_before_running(&record);
        if record.has_open_interactions() {
            let status = TaskView::read(&self.api, &record).await?.status().await?;
            self.sent_state = status.state;
            return Ok(Some(self.status_event(status, false, Metadata::new())));
        }
        if !is_interrupted(self.sent_state) || record.outcome.is_some() {
            return Ok(None);
        }
        self.sent_state = TaskState::Working;
        Ok(Some(self.active_status_event(at, None)))
    }

    /// Returns the update with a message of an agent that acts.
    fn message_event(&mut self, at: DateTime<Utc>, message: Message) -> StreamEvent {
        self.sent_state = self.working_or_interrupted_state();
        self.active_status_event(at, Some(message))
    }

    /// Returns the state of a task whose agent acts: an agent can act while one of its tool calls waits for an answer.
    const fn working_or_interrupted_state(&self) -> TaskState {
        if is_interrupted(self.sent_state) { self.sent_state } else { TaskState::Working }
    }

    /// Returns the update with a piece of an answer that grows.
    pub fn answer_event(&self, text: String, append: bool) -> StreamEvent {
        let (id, parts) = (ANSWER_ARTIFACT_ID, vec![A2aPart::text(text)]);
        let artifact =
            build_artifact(id, Some(id.to_owned()), None, (parts, ArtifactLosses::default()));
        self.artifact_event(artifact, append, false)
    }

    /// Returns the update with a piece of standard error, for clients that named the extension.
    pub fn stderr_event(&self, range: TextRange, text: &str) -> StreamEvent {
        let TextRange { attempt_id, from, to, .. } = range;
        let piece = json!({
            "turn": attempt_id.turn,
            "attempt": attempt_id.attempt,
            "from": from,
            "to": to,
            "text": text,
        });
        self.metadata_event(self.api.reader.now(), (STDERR_KEY, piece))
    }

    /// Returns the update with the current queue position.
    pub fn queue_event(&mut self, queued: Queued) -> StreamEvent {
        if is_interrupted(self.sent_state) {
            self.sent_state = TaskState::Working; // The question was answered.
        }
        self.is_showing_queue_position = true;
        let message = Some(super::queue_message(&self.record, queued));
        let timestamp = self.api.reader.now();
        let status = TaskStatus { state: self.sent_state, message, timestamp };
        self.status_event(status, false, Metadata::new())
    }

    /// Returns the last update: the end of the task, or its question. `None` when the same question was sent.
    ///
    /// # Errors
    /// Fails when the ledger could not be read.
    pub async fn final_event(
        &mut self,
        view: &TaskView<'_>,
    ) -> Result<Option<StreamEvent>, Failure> {
        let status = view.status().await?;
        // A client that resumes after a question has seen it already.
        let is_already_sent = status.state == self.sent_state && is_interrupted(self.sent_state);
        self.sent_state = status.state;
        Ok((!is_already_sent).then(|| self.status_event(status, true, view.end_metadata())))
    }

    fn artifact_event(&self, artifact: Artifact, append: bool, last_chunk: bool) -> StreamEvent {
        StreamEvent::Artifact(ArtifactUpdate {
            task_id: self.record.id.to_string(),
            context_id: self.record.context.0.clone(),
            artifact,
            append,
            last_chunk,
            metadata: Metadata::new(),
        })
    }

    /// Returns an update with metadata only, without text for a person.
    fn metadata_event(
        &self,
        timestamp: DateTime<Utc>,
        (name, value): (&str, impl Serialize),
    ) -> StreamEvent {
        let status =
            TaskStatus { state: self.working_or_interrupted_state(), message: None, timestamp };
        let value = serde_json::to_value(value).unwrap_or_default();
        self.status_event(status, false, Metadata::from_iter([(name.to_owned(), value)]))
    }

    fn active_status_event(
        &self,
        timestamp: DateTime<Utc>,
        message: Option<Message>,
    ) -> StreamEvent {
        let status = TaskStatus { state: self.working_or_interrupted_state(), message, timestamp };
        self.status_event(status, false, Metadata::new())
    }

    fn status_event(&self, status: TaskStatus, is_final: bool, metadata: Metadata) -> StreamEvent {
        StreamEvent::Status(StatusUpdate {
            task_id: self.record.id.to_string(),
            context_id: self.record.context.0.clone(),
            status,
            is_final,
            metadata,
        })
    }
}

/// Returns true if a task in this state waits for its caller.
const fn is_interrupted(state: TaskState) -> bool {
    matches!(state, TaskState::InputRequired | TaskState::AuthRequired)
}

/// Returns an event that is a step of the agent in its published form.
fn step_value(event: &EventKind) -> Option<Value> {
    match event {
        EventKind::Step { step } => Some(json!(step)),
        EventKind::Hop { hop, stage } => Some(hop_step_value(*hop, stage)),
        EventKind::RunStep { row, .. } => Some(run_step_value(row)),
        _ => None,
    }
}

/// Returns a step of a run as a step of the agent, without its text.
fn run_step_value(row: &StepRecord) -> Value {
    let StepRecord { number, turn, step_type, tool, .. } = row;
    let mut step = json!({"step": step_type, "number": number, "turn": turn});
    if let (Some(tool), Some(step)) = (tool, step.as_object_mut()) {
        step.insert("tool".to_owned(), json!(tool));
    }
    step
}

/// Returns a stage of a hop as a step of the agent.
fn hop_step_value(hop: u32, stage: &HopStage) -> Value {
    match stage {
        HopStage::Planned { step, agent, .. } => {
            json!({"step": "hop", "hop": hop, "stage": "planned", "name": step, "agent": agent})
        }
        HopStage::Taken { execution } => {
            json!({"step": "hop", "hop": hop, "stage": "taken", "execution": execution})
        }
        HopStage::Ended { outcome, code: None } => {
            json!({"step": "hop", "hop": hop, "stage": "ended", "outcome": outcome})
        }
        HopStage::Ended { outcome, code: Some(code) } => {
            json!({"step": "hop", "hop": hop, "stage": "ended", "outcome": outcome, "code": code})
        }
    }
}
