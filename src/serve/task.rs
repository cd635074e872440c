//! An execution as an A2A task: one machine inside, total mappings to the words outside.

use std::collections::BTreeMap;

use algonius_actors::door::Gateway;
use algonius_actors::model::content::{Kind, Piece};
use algonius_actors::model::event::{ANSWER, Channel, Event, Fact, Limit, Speaker};
use algonius_actors::model::execution::{Outcome, Stamp};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::progress::Raw;
use algonius_actors::model::queue::Queued;
use algonius_actors::model::record::{Record, Shown};
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::Value;

use crate::wire::a2a::v1::{
    Artifact, Content, History, Message, Metadata, Part, Role, Task, TaskState, TaskStatus,
};
use crate::wire::problem;

/// Under this name an artifact's metadata tells how many places of it are masked.
const REDACTED: &str = "redacted";

/// The task's state for where an execution is and how it ended.
#[must_use]
pub fn state(record: &Record) -> TaskState {
    match record.shown_state() {
        Shown::Submitted => TaskState::Submitted,
        Shown::Working => TaskState::Working,
        Shown::InputRequired => TaskState::InputRequired,
        Shown::Completed => TaskState::Completed,
        Shown::Canceled => TaskState::Canceled,
        Shown::Failed => TaskState::Failed,
        Shown::Rejected => TaskState::Rejected,
    }
}

/// The public state of executions for the state of a task; `None` for one that none is ever in.
#[must_use]
pub fn shown(state: TaskState) -> Option<Shown> {
    match state {
        TaskState::Submitted => Some(Shown::Submitted),
        TaskState::Working => Some(Shown::Working),
        TaskState::InputRequired => Some(Shown::InputRequired),
        TaskState::Completed => Some(Shown::Completed),
        TaskState::Canceled => Some(Shown::Canceled),
        TaskState::Failed => Some(Shown::Failed),
        TaskState::Rejected => Some(Shown::Rejected),
        TaskState::AuthRequired => None,
    }
}

/// An execution as read at one moment, to be told as a task.
pub struct Telling<'r> {
    gateway: &'r Gateway,
    record: &'r Record,
    events: Vec<Event>,
    queued: Option<Queued>,
}

impl<'r> Telling<'r> {
    /// Reads what the record knows of, and nothing later.
    ///
    /// # Errors
    /// When the ledger could not be read.
    pub async fn read(gateway: &'r Gateway, record: &'r Record) -> Result<Self, Failure> {
        let mut events = gateway.events(record, 0).await?;
        events.retain(|event| event.number <= record.last_event);
        let queued = gateway.queued(record).await;
        Ok(Self { gateway, record, events, queued })
    }

    /// The task with the text of its answer as it was given, where that is the answer shown.
    #[must_use]
    pub fn with(&self, raw: Option<Raw>, mut task: Task) -> Task {
        let answer = task.artifacts.iter_mut().find(|made| made.artifact_id == ANSWER);
        let raw = raw.filter(|raw| raw.stamp == self.record.stamp && !self.has_own_answer());
        if let (Some(answer), Some(raw)) = (answer, raw)
            && let [Part { content: Content::Text(text), .. }] = answer.parts.as_mut_slice()
        {
            raw.text.as_ref().clone_into(text);
            answer.metadata.remove(REDACTED);
        }
        task
    }

    /// Whether the agent itself made something under the answer's id.
    fn has_own_answer(&self) -> bool {
        let own = |piece: &Piece| piece.text.channel == Channel::Parts;
        self.events.iter().any(|event| match &event.fact {
            Fact::Artifact { id, pieces, .. } => id == ANSWER && pieces.iter().any(own),
            _ => false,
        })
    }

    /// The whole task.
    ///
    /// # Errors
    /// When the ledger could not be read.
    pub async fn task(&self, history: History) -> Result<Task, Failure> {
        let artifacts = self.artifacts().await?;
        Ok(Task { artifacts, ..self.outline(history).await? })
    }

    /// The task without what was made.
    ///
    /// # Errors
    /// When the ledger could not be read.
    pub async fn outline(&self, history: History) -> Result<Task, Failure> {
        Ok(Task {
            id: self.record.id.to_string(),
            context_id: self.record.context.0.clone(),
            status: self.status().await?,
            artifacts: Vec::new(),
            history: self.history(history).await?,
            metadata: Metadata::new(),
        })
    }

    /// Where it is, and what is to be said about it.
    ///
    /// # Errors
    /// When the ledger could not be read.
    pub async fn status(&self) -> Result<TaskStatus, Failure> {
        let state = state(self.record);
        let message = match &self.record.failure {
            Some(failure) if state.is_terminal() => Some(told(self.record, failure)),
            _ => match self.queued {
                Some(queued) => Some(waiting(self.record, queued)),
                None => self.word(state).await?,
            },
        };
        let timestamp = self.record.status_at();
        Ok(TaskStatus { state, message, timestamp })
    }

    /// What it waits for before it goes on.
    #[must_use]
    pub const fn queued(&self) -> Option<Queued> {
        self.queued
    }

    /// The answer without a task, where the agent gave only that.
    ///
    /// # Errors
    /// When the ledger could not be read.
    pub async fn reply(&self) -> Result<Option<Message>, Failure> {
        let made = self.events.iter().any(|event| matches!(event.fact, Fact::Artifact { .. }));
        if made || self.record.outcome != Some(Outcome::Completed) {
            return Ok(None);
        }
        let message = self.last_said(Speaker::AgentReplies).await?;
        Ok(message.map(|message| Message { task_id: None, ..message }))
    }

    /// What the agent said last that belongs to this state.
    async fn word(&self, state: TaskState) -> Result<Option<Message>, Failure> {
        match state {
            TaskState::InputRequired | TaskState::AuthRequired => {
                self.last_said(Speaker::AgentAsks).await
            }
            TaskState::Working => self.last_said(Speaker::Agent).await,
            TaskState::Completed => match self.last_said(Speaker::AgentEnds).await? {
                Some(message) => Ok(Some(message)),
                None => self.last_said(Speaker::AgentReplies).await,
            },
            TaskState::Submitted
            | TaskState::Canceled
            | TaskState::Failed
            | TaskState::Rejected => Ok(None),
        }
    }

    async fn last_said(&self, by: Speaker) -> Result<Option<Message>, Failure> {
        for event in self.events.iter().rev() {
            if let Fact::Said { speaker, message, pieces } = &event.fact
                && *speaker == by
            {
                return said(self.gateway, self.record, by, message, pieces).await.map(Some);
            }
        }
        Ok(None)
    }

    /// What was said, but for what stands in the status.
    async fn history(&self, wanted: History) -> Result<Vec<Message>, Failure> {
        let is_open = state(self.record) == TaskState::InputRequired;
        let mut said_all = Vec::new();
        for event in &self.events {
            if let Fact::Said { speaker, message, pieces } = &event.fact
                && matches!(speaker, Speaker::Caller | Speaker::AgentAsks)
            {
                said_all.push((*speaker, message, pieces));
            }
        }
        if is_open && said_all.last().is_some_and(|(by, ..)| *by == Speaker::AgentAsks) {
            said_all.pop();
        }
        let skipped = match wanted {
            History::All => 0,
            History::Last(count) => said_all.len().saturating_sub(count),
        };
        let mut messages = Vec::new();
        for (by, message, pieces) in said_all.into_iter().skip(skipped) {
            messages.push(said(self.gateway, self.record, by, message, pieces).await?);
        }
        Ok(messages)
    }

    /// What was made, each artifact with all its pieces. What failed attempts left is in the
    /// history of events only.
    async fn artifacts(&self) -> Result<Vec<Artifact>, Failure> {
        let attempts = last_attempts(&self.events);
        let mut artifacts: Vec<Artifact> = Vec::new();
        for event in &self.events {
            let Fact::Artifact { id, name, description, pieces, append, .. } = &event.fact else {
                continue;
            };
            let stamp = pieces.first().map(|piece| piece.text.stamp);
            if stamp.is_none_or(|stamp| attempts.get(&stamp.turn) != Some(&stamp.attempt)) {
                continue;
            }
            let masked = pieces.iter().map(|piece| piece.redacted).sum();
            let parts = parts(self.gateway, self.record, pieces).await?;
            let known = artifacts.iter_mut().find(|known| known.artifact_id == *id);
            match known {
                Some(known) if *append => extend(known, parts, masked),
                Some(known) => (known.parts, known.metadata) = (parts, redacted(masked)),
                None => {
                    let (name, description) = (name.clone(), description.clone());
                    artifacts.push(artifact(id, name, description, (parts, masked)));
                }
            }
        }
        Ok(artifacts)
    }
}

/// Pieces of text that follow each other are one text.
fn extend(artifact: &mut Artifact, parts: Vec<Part>, masked: u64) {
    let before = artifact.metadata.get(REDACTED).and_then(Value::as_u64);
    artifact.metadata = redacted(before.unwrap_or(0) + masked);
    for part in parts {
        match (artifact.parts.last_mut(), part) {
            (
                Some(Part { content: Content::Text(text), filename: None, .. }),
                Part { content: Content::Text(more), filename: None, .. },
            ) => text.push_str(&more),
            (_, part) => artifact.parts.push(part),
        }
    }
}

/// The attempt that counts of each turn: its last.
fn last_attempts(events: &[Event]) -> BTreeMap<u32, u32> {
    let mut attempts = BTreeMap::new();
    for event in events {
        if let Fact::Moved(moved) = &event.fact {
            let Stamp { turn, attempt } = moved.stamp;
            attempts.insert(turn, attempt);
        }
    }
    attempts
}

/// What is said beside an artifact of which so many places are masked.
fn redacted(masked: u64) -> Metadata {
    let count = (masked > 0).then(|| (REDACTED.to_owned(), masked.into()));
    count.into_iter().collect()
}

/// An artifact of these parts, of which so many places are masked.
#[must_use]
pub fn artifact(
    id: &str,
    name: Option<String>,
    description: Option<String>,
    (parts, masked): (Vec<Part>, u64),
) -> Artifact {
    let (metadata, extensions) = (redacted(masked), Vec::new());
    Artifact { artifact_id: id.to_owned(), name, description, parts, metadata, extensions }
}

/// Parts with the texts that the ledger holds.
///
/// # Errors
/// When the ledger could not be read.
pub async fn parts(
    gateway: &Gateway,
    record: &Record,
    pieces: &[Piece],
) -> Result<Vec<Part>, Failure> {
    let mut parts = Vec::new();
    for piece in pieces {
        let text = gateway.text(record, piece.text).await?;
        let content = match piece.of {
            Kind::Text => Content::Text(text),
            Kind::Data => Content::Data(serde_json::from_str(&text).unwrap_or(Value::String(text))),
            Kind::Bytes => Content::Raw(text),
            Kind::Url => Content::Url(text),
        };
        let (filename, media_type) = (piece.filename.clone(), piece.media_type.clone());
        parts.push(Part { content, filename, media_type, metadata: Metadata::new() });
    }
    Ok(parts)
}

/// Something said, with the texts that the ledger holds: redacted.
///
/// # Errors
/// When the ledger could not be read.
pub async fn said(
    gateway: &Gateway,
    record: &Record,
    speaker: Speaker,
    message_id: &str,
    pieces: &[Piece],
) -> Result<Message, Failure> {
    let role = match speaker {
        Speaker::Caller => Role::User,
        Speaker::Agent | Speaker::AgentAsks | Speaker::AgentEnds | Speaker::AgentReplies => {
            Role::Agent
        }
    };
    let parts = parts(gateway, record, pieces).await?;
    Ok(message(record, message_id.to_owned(), role, parts))
}

/// What the service says about a failure.
fn told(record: &Record, failure: &Failure) -> Message {
    let id = format!("{}-failure", record.id);
    let mut message = message(record, id, Role::Agent, vec![Part::text(&*failure.message)]);
    if let Value::Object(details) = problem::details(failure) {
        message.metadata = details;
    }
    message
}

/// What the service says when a deadline is near.
#[must_use]
pub fn expiring(record: &Record, (limit, at): (Limit, DateTime<Utc>), words: &str) -> Message {
    let id = format!("{}-{}-deadline", record.id, limit.as_str());
    let mut message = message(record, id, Role::Agent, vec![Part::text(words)]);
    message.metadata.insert("limit".to_owned(), limit.as_str().into());
    let at = at.to_rfc3339_opts(SecondsFormat::Millis, true);
    message.metadata.insert("endsAt".to_owned(), at.into());
    message
}

/// What the service says when an agent does not go on with a conversation.
#[must_use]
pub fn discontinued(record: &Record, words: &str) -> Message {
    let id = format!("{}-continuity", record.id);
    let mut message = message(record, id, Role::Agent, vec![Part::text(words)]);
    message.metadata.insert("continuity".to_owned(), "lost".into());
    message
}

/// What the service says while an execution waits.
#[must_use]
pub fn waiting(record: &Record, queued: Queued) -> Message {
    let id = format!("{}-queue", record.id);
    let mut message = message(record, id, Role::Agent, vec![Part::text(queued.to_string())]);
    if let Ok(Value::Object(details)) = serde_json::to_value(queued) {
        message.metadata = details;
    }
    message
}

fn message(record: &Record, message_id: String, role: Role, parts: Vec<Part>) -> Message {
    Message {
        message_id,
        context_id: Some(record.context.0.clone()),
        task_id: Some(record.id.to_string()),
        role,
        parts,
        metadata: Metadata::new(),
        extensions: Vec::new(),
        reference_task_ids: Vec::new(),
    }
}
