//! An execution as a stream: a snapshot first, then what happens, until it rests.

use std::collections::VecDeque;

use algonius_actors::door::Gateway;
use algonius_actors::follow::{Follow, Next};
use algonius_actors::model::event::{Event, Fact, Speaker};
use algonius_actors::model::execution::State;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::queue::Queued;
use algonius_actors::model::record::Record;
use chrono::{DateTime, Utc};
use serde::Serialize;

use super::a2a::Events;
use super::task::{self, Telling, artifact};
use crate::wire::a2a::v1::{
    ArtifactUpdate, History, Message, Metadata, StatusUpdate, StreamEvent, TaskState, TaskStatus,
};

/// What is left to be told of a stream.
struct Teller {
    gateway: Gateway,
    record: Record,
    follow: Follow,
    ready: VecDeque<(u64, StreamEvent)>,
    shown: TaskState,
    /// Whether the last that was told is that it waits.
    is_queued: bool,
    is_over: bool,
}

/// What of an execution is streamed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Range {
    /// The last event that is known; without one a snapshot comes first.
    pub after: Option<u64>,
    /// Whether it goes on past questions, up to the end.
    pub past_questions: bool,
}

/// Streams an execution. Without a known event it begins with a snapshot; after one, with what
/// came since.
///
/// # Errors
/// When the ledger could not be read.
pub async fn stream(
    gateway: &Gateway,
    record: Record,
    Range { after, past_questions }: Range,
    history: History,
) -> Result<Events, Failure> {
    let mut ready = VecDeque::new();
    let (mut shown, mut queued) = (TaskState::Submitted, None);
    if after.is_none() {
        let telling = Telling::read(gateway, &record).await?;
        queued = telling.queued();
        let task = telling.task(history).await?;
        shown = task.status.state;
        ready.push_back((record.last_event, StreamEvent::Task(task)));
    }
    let follow = gateway.follow(record.clone(), after.unwrap_or(record.last_event), None);
    let follow = follow.knowing(queued);
    let follow = if past_questions { follow.past_questions() } else { follow };
    let is_over = shown.is_terminal();
    let gateway = gateway.clone();
    let is_queued = queued.is_some();
    let teller = Teller { gateway, record, follow, ready, shown, is_queued, is_over };
    Ok(Box::pin(futures_util::stream::unfold(teller, |mut teller| async move {
        let next = teller.next().await.transpose()?;
        Some((next, teller))
    })))
}

/// What one event of an execution is to those who follow it; `None` when it is nothing to them.
///
/// # Errors
/// When the ledger could not be read.
pub async fn one(
    gateway: &Gateway,
    record: &Record,
    number: u64,
) -> Result<Option<StreamEvent>, Failure> {
    let events = gateway.events(record, number.saturating_sub(1)).await?;
    let Some(event) = events.into_iter().next().filter(|event| event.number == number) else {
        return Ok(None);
    };
    let (gateway, record) = (gateway.clone(), record.clone());
    let follow = gateway.follow(record.clone(), number, None);
    let (ready, shown) = (VecDeque::new(), TaskState::Submitted);
    let (is_queued, is_over) = (false, false);
    let mut teller = Teller { gateway, record, follow, ready, shown, is_queued, is_over };
    match &event.fact {
        Fact::Moved(moved) if matches!(moved.to, State::Cleanup | State::Waiting) => {
            let status = Telling::read(&teller.gateway, &teller.record).await?.status().await?;
            Ok(Some(teller.update(status, true)))
        }
        _ => teller.tell(event).await,
    }
}

impl Teller {
    async fn next(&mut self) -> Result<Option<(u64, StreamEvent)>, Failure> {
        loop {
            if let Some(told) = self.ready.pop_front() {
                return Ok(Some(told));
            }
            if self.is_over {
                return Ok(None);
            }
            match self.follow.next().await {
                Ok(Some(Next::Event(event))) => {
                    let number = event.number;
                    let told = self.tell(event).await?;
                    self.ready.extend(told.map(|told| (number, told)));
                }
                Ok(Some(Next::Queued(queued))) => self.wait(queued),
                Ok(Some(Next::Rest(record))) => self.end(&record).await?,
                Ok(None) => self.is_over = true,
                Err(failure) => {
                    self.is_over = true;
                    return Err(failure);
                }
            }
        }
    }

    /// What callers see of an event: moves within one public state are none of theirs.
    async fn tell(&mut self, event: Event) -> Result<Option<StreamEvent>, Failure> {
        match event.fact {
            Fact::Moved(moved) if moved.to == State::Starting => {
                let is_news = self.shown != TaskState::Working || self.is_queued;
                self.is_queued = false;
                self.shown = TaskState::Working;
                Ok(is_news.then(|| self.working(event.at, None)))
            }
            Fact::Said { speaker: Speaker::Agent, message, pieces } => {
                self.shown = TaskState::Working;
                let said =
                    task::said(&self.gateway, &self.record, Speaker::Agent, &message, &pieces);
                let message = said.await?;
                Ok(Some(self.working(event.at, Some(message))))
            }
            Fact::Expiring { limit, ends_at, message } => {
                self.shown = TaskState::Working;
                let message = task::expiring(&self.record, (limit, ends_at), &message);
                Ok(Some(self.working(event.at, Some(message))))
            }
            Fact::Discontinued { message } => {
                self.shown = TaskState::Working;
                let message = task::discontinued(&self.record, &message);
                Ok(Some(self.working(event.at, Some(message))))
            }
            Fact::Heartbeat(usage) => Ok(Some(self.beside(event.at, ("usage", usage)))),
            Fact::Stepped { step } => Ok(Some(self.beside(event.at, ("step", step)))),
            Fact::Artifact { id, name, description, pieces, append, last } => {
                let masked = pieces.iter().map(|piece| piece.redacted).sum();
                let parts = task::parts(&self.gateway, &self.record, &pieces).await?;
                Ok(Some(StreamEvent::Artifact(ArtifactUpdate {
                    task_id: self.record.id.to_string(),
                    context_id: self.record.context.0.clone(),
                    artifact: artifact(&id, name, description, (parts, masked)),
                    append,
                    last_chunk: last,
                    metadata: Metadata::new(),
                })))
            }
            _ => Ok(None),
        }
    }

    /// A place in a line: of now, so it comes under the number of what was told before it.
    fn wait(&mut self, queued: Queued) {
        if self.shown == TaskState::InputRequired {
            self.shown = TaskState::Working; // The question was answered.
        }
        self.is_queued = true;
        let message = Some(task::waiting(&self.record, queued));
        let status = TaskStatus { state: self.shown, message, timestamp: self.gateway.now() };
        self.ready.push_back((self.follow.known(), self.update(status, false)));
    }

    /// An event of the service's own: how it ended, or what it asks.
    async fn end(&mut self, record: &Record) -> Result<(), Failure> {
        let status = Telling::read(&self.gateway, record).await?.status().await?;
        let is_known = status.state == self.shown && self.shown == TaskState::InputRequired;
        self.shown = status.state;
        if !is_known {
            self.ready.push_back((record.last_event, self.update(status, true)));
        }
        Ok(())
    }

    /// Beside the words: there is nothing to read for a person.
    fn beside(
        &self,
        timestamp: DateTime<Utc>,
        (name, value): (&str, impl Serialize),
    ) -> StreamEvent {
        let status = TaskStatus { state: TaskState::Working, message: None, timestamp };
        let value = serde_json::to_value(value).unwrap_or_default();
        self.noted(status, false, Metadata::from_iter([(name.to_owned(), value)]))
    }

    fn working(&self, timestamp: DateTime<Utc>, message: Option<Message>) -> StreamEvent {
        self.update(TaskStatus { state: TaskState::Working, message, timestamp }, false)
    }

    fn update(&self, status: TaskStatus, is_final: bool) -> StreamEvent {
        self.noted(status, is_final, Metadata::new())
    }

    fn noted(&self, status: TaskStatus, is_final: bool, metadata: Metadata) -> StreamEvent {
        StreamEvent::Status(StatusUpdate {
            task_id: self.record.id.to_string(),
            context_id: self.record.context.0.clone(),
            status,
            is_final,
            metadata,
        })
    }
}
