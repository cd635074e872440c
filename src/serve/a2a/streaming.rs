//! An execution as a stream: first a snapshot, then the updates, until the execution ends or waits for input.
//!
//! Text is sent in pieces of at most 64 KiB. Each piece is read from the ledger when the client reads it, so
//! that a client that reads nothing costs one piece of memory, however long the answer is.

pub mod artifact_chunks;
pub mod event_id;
pub mod text_stream;

use std::collections::VecDeque;
use std::pin::Pin;

use algonius_a2a::v1::{HistoryLength, StreamEvent, TaskState};
use algonius_actors::api::{Api, Subscription, SubscriptionItem};
use algonius_actors::model::execution::event::{Event, EventKind, TextChannel};
use algonius_actors::model::execution::progress::PartialAnswer;
use algonius_actors::model::execution::record::Record;
use algonius_actors::model::failure::Failure;

use futures_util::Stream;

use super::task::TaskView;
use super::task::updates::TaskUpdates;
use artifact_chunks::ArtifactChunks;
use event_id::EventId;
use text_stream::{TextProgress, is_end_of_work};

/// Stream of events with the cursor after each; a client can resume the stream after any of them.
pub type ResumableEvents =
    Pin<Box<dyn Stream<Item = Result<(EventId, StreamEvent), Failure>> + Send>>;

/// Part of an execution that is streamed, and the form of the stream.
#[derive(Debug, Clone, Default)]
pub struct StreamRange {
    /// Last position that the client knows; without it the stream starts with a snapshot.
    pub after: Option<EventId>,
    /// True if the stream continues after questions, up to the end.
    pub past_questions: bool,
    /// True if artifacts are sent at the end only.
    pub is_whole: bool,
    /// True if text that the program writes to standard error is sent too.
    pub with_stderr: bool,
}

/// Streams an execution. Without a known place the stream starts with a snapshot; otherwise with
/// the updates after that place.
///
/// # Errors
/// Fails if the ledger cannot be read.
pub async fn stream(
    api: &Api,
    record: Record,
    range: StreamRange,
    history: HistoryLength,
) -> Result<ResumableEvents, Failure> {
    let mut ready = VecDeque::new();
    let (mut sent_state, mut queued) = (TaskState::Submitted, None);
    if range.after.is_none() {
        let view = TaskView::read(api, &record).await?;
        queued = view.queued();
        let task = view.task(history).await?;
        sent_state = task.status.state;
        let cursor = EventId::from(record.last_event);
        ready.push_back(StreamItem::Update(cursor, Box::new(StreamEvent::Task(task))));
    }
    let after = range.after.clone().unwrap_or_else(|| record.last_event.into());
    // Following starts at the snapshot's last event, so that nothing between both is lost or sent twice.
    let subscription = Subscription::new(api.reader.clone(), record.clone(), after.event, None)
        .with_position(queued);
    let subscription =
        if range.past_questions { subscription.past_questions() } else { subscription };
    let subscription =
        if range.is_whole && !range.with_stderr { subscription } else { subscription.with_text() };
    let texts = TextProgress::new(
        record.attempt_id,
        &[TextChannel::Stdout, TextChannel::Stderr, TextChannel::Answer],
    );
    let texts = after.texts.as_ref().map_or(texts.clone(), |known| texts.after(known));
    let (api, is_queued) = (api.clone(), queued.is_some());
    let is_over = sent_state.is_terminal();
    let task_stream = TaskStream {
        updates: TaskUpdates { api, record, sent_state, is_queued },
        subscription,
        ready,
        event: after.event,
        byte_offset: after.byte_offset,
        texts,
        range,
        has_grown: false,
        is_over,
    };
    Ok(Box::pin(futures_util::stream::unfold(task_stream, |mut task_stream| async move {
        let next = task_stream.next().await.transpose()?;
        Some((next, task_stream))
    })))
}

/// Item that can be sent next.
enum StreamItem {
    /// Update with the position after it.
    Update(EventId, Box<StreamEvent>),
    /// Chunks of an artifact.
    Chunks(ArtifactChunks),
    /// An event that is sent after all text that exists now.
    Event(Box<Event>),
    /// End of the execution or request for input; sent after all text.
    EndOrQuestion(Box<Record>),
}

/// Remaining part of a stream.
struct TaskStream {
    updates: TaskUpdates,
    subscription: Subscription,
    ready: VecDeque<StreamItem>,
    /// Number of the last event that was sent completely.
    event: u64,
    /// Number of bytes of the next event that the client already has.
    byte_offset: u64,
    /// Number of bytes that were sent of each text of the program; a text may be the answer.
    texts: TextProgress,
    range: StreamRange,
    /// True if there may be text that was not sent.
    has_grown: bool,
    is_over: bool,
}

impl TaskStream {
    async fn next(&mut self) -> Result<Option<(EventId, StreamEvent)>, Failure> {
        loop {
            if self.has_grown {
                match self.next_text().await? {
                    Some(update) => return Ok(Some(update)),
                    None => self.has_grown = false,
                }
            }
            match self.ready.pop_front() {
                Some(StreamItem::Update(cursor, update)) => return Ok(Some((cursor, *update))),
                Some(StreamItem::Chunks(chunks)) => return self.next_chunk(chunks).await.map(Some),
                // The loop goes on, because an event may cause no update of the task.
                Some(StreamItem::Event(event)) => self.take(*event).await?,
                Some(StreamItem::EndOrQuestion(record)) => self.end(&record).await?,
                None if self.is_over => return Ok(None),
                None => self.wait().await?,
            }
        }
    }

    /// Waits for the next item.
    async fn wait(&mut self) -> Result<(), Failure> {
        let next = self.subscription.next().await.inspect_err(|_| self.is_over = true)?;
        match next {
            Some(SubscriptionItem::Event(event)) => {
                // Text of the program is sent before its end. The rest of an answer is sent with the event
                // that makes the text the answer.
                self.has_grown = self.range.with_stderr && is_end_of_work(&event.data);
                self.ready.push_back(StreamItem::Event(Box::new(event)));
            }
            Some(SubscriptionItem::TextAvailable(record)) => {
                self.updates.record = *record;
                self.has_grown = true;
            }
            Some(SubscriptionItem::Queued(queued)) => {
                let update = Box::new(self.updates.wait(queued));
                self.ready.push_back(StreamItem::Update(self.cursor(), update));
            }
            Some(SubscriptionItem::EndOrQuestion(record)) => {
                self.has_grown = self.range.with_stderr;
                self.ready.push_back(StreamItem::EndOrQuestion(record));
            }
            None => self.is_over = true,
        }
        Ok(())
    }

    /// Processes the event that is sent next.
    async fn take(&mut self, event: Event) -> Result<(), Failure> {
        let number = event.number;
        // Before anything is sent: a new attempt has new texts, and the places in them start again.
        self.texts.take(&event.data);
        self.texts.supersede(&event.data);
        if let Some(mut chunks) = ArtifactChunks::of(&event) {
            if self.range.is_whole {
                self.event = number;
                return Ok(());
            }
            chunks.skip(self.already_sent_bytes(&chunks));
            // The program may continue for a while after its answer; the answer is not sent again in that case.
            if let Some(text) = chunks.only_text().filter(|text| self.texts.is_of(text.attempt_id))
            {
                self.texts.skip_to(text.channel, text.to);
            }
            self.ready.push_back(StreamItem::Chunks(chunks));
            return Ok(());
        }
        // A stream that ends with a question gets its status as the last update.
        let is_last =
            matches!(event.data, EventKind::InteractionOpened { .. }) && !self.range.past_questions;
        let update = if is_last { None } else { self.updates.update_for(event).await? };
        (self.event, self.byte_offset) = (number, 0);
        let cursor = self.cursor();
        self.ready.extend(update.map(|update| StreamItem::Update(cursor, Box::new(update))));
        Ok(())
    }

    /// Returns the number of bytes of an artifact's event that were sent before: by another stream that this stream
    /// continues, or while the answer grew.
    fn already_sent_bytes(&self, chunks: &ArtifactChunks) -> u64 {
        let sent = chunks.only_text().map_or(0, |text| {
            let sent = self.texts.sent_bytes(text.attempt_id, text.channel);
            // If the text was shorter before, it is another text, which is sent from its start.
            // Only these channels grow in a stream before their event.
            let is_same_text = matches!(text.channel, TextChannel::Stdout | TextChannel::Answer)
                && sent <= text.to;
            if is_same_text { sent.saturating_sub(text.from) } else { 0 }
        });
        sent.max(self.byte_offset)
    }

    /// Sends the next chunk of an artifact.
    async fn next_chunk(
        &mut self,
        mut chunks: ArtifactChunks,
    ) -> Result<(EventId, StreamEvent), Failure> {
        let TaskUpdates { api, record, .. } = &self.updates;
        let (update, is_last) = chunks.next(api, record).await?;
        match is_last {
            true => (self.event, self.byte_offset) = (chunks.event.max(self.event), 0),
            false => {
                // An artifact that is sent at the end is sent again from its start to a client that
                // reconnects in its middle.
                self.byte_offset = if self.range.is_whole { 0 } else { chunks.sent_bytes() };
                self.ready.push_front(StreamItem::Chunks(chunks));
            }
        }
        Ok((self.cursor(), StreamEvent::Artifact(update)))
    }

    /// Returns the next piece of a text that grows; `None` when all of it was sent.
    async fn next_text(&mut self) -> Result<Option<(EventId, StreamEvent)>, Failure> {
        let TaskUpdates { api, record, .. } = &self.updates;
        if let Some(PartialAnswer { attempt_id, channel, from }) =
            self.subscription.partial_answer().filter(|_| !self.range.is_whole)
        {
            self.texts.advance_to(attempt_id);
            self.texts.skip_to(channel, from);
            let next = self.texts.next_of(channel, api, record).await?;
            if let Some((span, text)) = next {
                return Ok(Some((
                    self.cursor(),
                    self.updates.artifact_update(text, span.from > from),
                )));
            }
        }
        if !self.range.with_stderr {
            return Ok(None);
        }
        let next = self.texts.next_of(TextChannel::Stderr, api, record).await?;
        Ok(next.map(|(span, text)| (self.cursor(), self.updates.stderr_event(span, &text))))
    }

    /// Sends the end of the execution or its question; before that all artifacts, if none was sent so far.
    async fn end(&mut self, record: &Record) -> Result<(), Failure> {
        let api = self.updates.api.clone();
        let view = TaskView::read(&api, record).await?;
        if self.range.is_whole {
            self.ready.extend(
                view.artifact_events().filter_map(ArtifactChunks::of).map(StreamItem::Chunks),
            );
        }
        if let Some(update) = self.updates.end(&view).await? {
            let cursor = EventId::from(record.last_event);
            self.ready.push_back(StreamItem::Update(cursor, Box::new(update)));
        }
        Ok(())
    }

    /// Returns the cursor after the last sent item.
    fn cursor(&self) -> EventId {
        EventId { event: self.event, byte_offset: self.byte_offset, texts: self.texts.cursor() }
    }
}
