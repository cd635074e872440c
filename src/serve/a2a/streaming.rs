//! An execution as a stream: first a snapshot, then the updates, until the execution ends or waits for input.
//!
//! Text is sent in pieces of at most 64 KiB. Each piece is read from the ledger when the client reads it, so
//! that a client that reads nothing costs one piece of memory, however long the answer is.

pub mod artifact_chunks;
pub mod stream_cursor;
pub mod text_progress;

use std::collections::VecDeque;
use std::pin::Pin;

use algonius_a2a::v1::{HistoryLength, StreamEvent, TaskState};
use algonius_actors::api::{Api, Subscription, SubscriptionItem};
use algonius_actors::model::execution::event::{Event, EventKind, TextChannel};
use algonius_actors::model::execution::progress::PartialAnswerLocation;
use algonius_actors::model::execution::record::ExecutionRecord;
use algonius_actors::model::failure::Failure;

use futures_util::Stream;

use super::task::TaskView;
use super::task::updates::{TaskUpdateBuilder, has_question_before_running};
use artifact_chunks::ArtifactChunks;
use stream_cursor::StreamCursor;
use text_progress::{TextProgress, is_end_of_work};

/// Stream of events with the cursor after each; a client can resume the stream after any of them.
pub type ResumableEvents =
    Pin<Box<dyn Stream<Item = Result<(StreamCursor, StreamEvent), Failure>> + Send>>;

/// Part of an execution that is streamed, and the form of the stream.
#[derive(Debug, Clone, Default)]
pub struct StreamOptions {
    /// Last position that the client knows; without it the stream starts with a snapshot.
    pub resume_after: Option<StreamCursor>,
    /// True if the stream continues after questions, up to the end.
    pub continues_past_questions: bool,
    /// True if artifacts are sent at the end only.
    pub sends_artifacts_at_end: bool,
    /// True if text that the program writes to standard error is sent too.
    pub includes_stderr: bool,
}

/// Streams an execution. Without a known place the stream starts with a snapshot; otherwise with
/// the updates after that place.
///
/// # Errors
/// Fails if the ledger cannot be read.
pub async fn stream(
    api: &Api,
    record: ExecutionRecord,
    options: StreamOptions,
    history_length: HistoryLength,
) -> Result<ResumableEvents, Failure> {
    let mut ready_items = VecDeque::new();
    let (mut sent_state, mut queue_position) = (TaskState::Submitted, None);
    if options.resume_after.is_none() {
        let view = TaskView::read(api, &record).await?;
        queue_position = view.queue_position();
        let task = view.task(history_length).await?;
        sent_state = task.status.state;
        let cursor = StreamCursor::from(record.last_event_number);
        ready_items.push_back(StreamItem::Update(cursor, Box::new(StreamEvent::Task(task))));
    }
    let start_cursor =
        options.resume_after.clone().unwrap_or_else(|| record.last_event_number.into());
    // Following starts at the snapshot's last event, so that nothing between both is lost or sent twice.
    let subscription =
        Subscription::new(api.reader.clone(), record.clone(), start_cursor.event_number, None)
            .with_reported_position(queue_position);
    let subscription = if options.continues_past_questions {
        subscription.continue_past_questions()
    } else {
        subscription
    };
    let subscription = if options.sends_artifacts_at_end && !options.includes_stderr {
        subscription
    } else {
        subscription.with_text()
    };
    let text_progress = TextProgress::new(
        record.attempt_id,
        &[TextChannel::Stdout, TextChannel::Stderr, TextChannel::Answer],
    );
    let text_progress = start_cursor
        .text_cursor
        .as_ref()
        .map_or(text_progress.clone(), |known_cursor| text_progress.with_cursor(known_cursor));
    let (api, is_showing_queue_position) = (api.clone(), queue_position.is_some());
    let has_question_before_running = has_question_before_running(&record);
    let is_over = sent_state.is_terminal();
    let task_stream = TaskStream {
        update_builder: TaskUpdateBuilder {
            api,
            record,
            sent_state,
            is_showing_queue_position,
            has_question_before_running,
        },
        subscription,
        ready_items,
        last_event: start_cursor.event_number,
        byte_offset: start_cursor.byte_offset,
        text_progress,
        options,
        may_have_unsent_text: false,
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
    Update(StreamCursor, Box<StreamEvent>),
    /// Chunks of an artifact.
    Chunks(ArtifactChunks),
    /// An event that is sent after all text that exists now.
    Event(Box<Event>),
    /// End of the execution or request for input; sent after all text.
    EndOrQuestion(Box<ExecutionRecord>),
}

/// Remaining part of a stream.
struct TaskStream {
    update_builder: TaskUpdateBuilder,
    subscription: Subscription,
    ready_items: VecDeque<StreamItem>,
    /// Number of the last event that was sent completely.
    last_event: u64,
    /// Number of bytes of the next event that the client already has.
    byte_offset: u64,
    /// Number of bytes that were sent of each text of the program; a text may be the answer.
    text_progress: TextProgress,
    options: StreamOptions,
    /// True if there may be text that was not sent.
    may_have_unsent_text: bool,
    is_over: bool,
}

impl TaskStream {
    async fn next(&mut self) -> Result<Option<(StreamCursor, StreamEvent)>, Failure> {
        loop {
            if self.may_have_unsent_text {
                match self.next_text().await? {
                    Some(update) => return Ok(Some(update)),
                    None => self.may_have_unsent_text = false,
                }
            }
            match self.ready_items.pop_front() {
                Some(StreamItem::Update(cursor, update)) => return Ok(Some((cursor, *update))),
                Some(StreamItem::Chunks(chunks)) => return self.next_chunk(chunks).await.map(Some),
                // The loop goes on, because an event may cause no update of the task.
                Some(StreamItem::Event(event)) => self.apply_event(*event).await?,
                Some(StreamItem::EndOrQuestion(record)) => self.enqueue_end_items(&record).await?,
                None if self.is_over => return Ok(None),
                None => self.wait_for_item().await?,
            }
        }
    }

    /// Waits for the next item.
    async fn wait_for_item(&mut self) -> Result<(), Failure> {
        let next = self.subscription.next().await.inspect_err(|_| self.is_over = true)?;
        match next {
            Some(SubscriptionItem::Event(event)) => {
                // Text of the program is sent before its end. The rest of an answer is sent with the event
                // that makes the text the answer.
                self.may_have_unsent_text =
                    self.options.includes_stderr && is_end_of_work(&event.data);
                self.ready_items.push_back(StreamItem::Event(Box::new(event)));
            }
            Some(SubscriptionItem::TextAvailable(record)) => {
                self.update_builder.record = *record;
                self.may_have_unsent_text = true;
            }
            Some(SubscriptionItem::Queued(queued)) => {
                let update = Box::new(self.update_builder.queue_event(queued));
                self.ready_items.push_back(StreamItem::Update(self.cursor(), update));
            }
            Some(SubscriptionItem::EndOrQuestion(record)) => {
                self.may_have_unsent_text = self.options.includes_stderr;
                self.ready_items.push_back(StreamItem::EndOrQuestion(record));
            }
            None => self.is_over = true,
        }
        Ok(())
    }

    /// Processes the event that is sent next.
    async fn apply_event(&mut self, event: Event) -> Result<(), Failure> {
        let number = event.number;
        // Before anything is sent: a new attempt has new texts, and the places in them start again.
        self.text_progress.apply_event(&event.data);
        self.text_progress.resume_after_superseded_answer(&event.data);
        if let Some(mut chunks) = ArtifactChunks::from_event(&event) {
            if self.options.sends_artifacts_at_end {
                self.last_event = number;
                return Ok(());
            }
            chunks.skip(self.already_sent_bytes(&chunks));
            // The program may continue for a while after its answer; the answer is not sent again in that case.
            if let Some(text) = chunks
                .single_text_range()
                .filter(|text| self.text_progress.is_of_attempt(text.attempt_id))
            {
                self.text_progress.skip_to(text.channel, text.to);
            }
            self.ready_items.push_back(StreamItem::Chunks(chunks));
            return Ok(());
        }
        // A stream that ends with a question gets its status as the last update.
        let ends_stream = matches!(event.data, EventKind::InteractionOpened { .. })
            && !self.options.continues_past_questions;
        let update = if ends_stream { None } else { self.update_builder.update_for(event).await? };
        (self.last_event, self.byte_offset) = (number, 0);
        let cursor = self.cursor();
        self.ready_items.extend(update.map(|update| StreamItem::Update(cursor, Box::new(update))));
        Ok(())
    }

    /// Returns the number of bytes of an artifact's event that were sent before: by another stream that this stream
    /// continues, or while the answer grew.
    fn already_sent_bytes(&self, chunks: &ArtifactChunks) -> u64 {
        let sent_bytes = chunks.single_text_range().map_or(0, |text| {
            let sent_bytes = self.text_progress.sent_bytes(text.attempt_id, text.channel);
            // If the text was shorter before, it is another text, which is sent from its start.
            // Only these channels grow in a stream before their event.
            let is_same_text = matches!(text.channel, TextChannel::Stdout | TextChannel::Answer)
                && sent_bytes <= text.to;
            if is_same_text { sent_bytes.saturating_sub(text.from) } else { 0 }
        });
        sent_bytes.max(self.byte_offset)
    }

    /// Sends the next chunk of an artifact.
    async fn next_chunk(
        &mut self,
        mut chunks: ArtifactChunks,
    ) -> Result<(StreamCursor, StreamEvent), Failure> {
        let TaskUpdateBuilder { api, record, .. } = &self.update_builder;
        let (update, is_last) = chunks.next_update(api, record).await?;
        match is_last {
            true => {
                (self.last_event, self.byte_offset) = (chunks.event_number.max(self.last_event), 0);
            }
            false => {
                // An artifact that is sent at the end is sent again from its start to a client that
                // reconnects in its middle.
                self.byte_offset =
                    if self.options.sends_artifacts_at_end { 0 } else { chunks.sent_bytes() };
                self.ready_items.push_front(StreamItem::Chunks(chunks));
            }
        }
        Ok((self.cursor(), StreamEvent::Artifact(update)))
    }

    /// Returns the next piece of a text that grows; `None` when all of it was sent.
    async fn next_text(&mut self) -> Result<Option<(StreamCursor, StreamEvent)>, Failure> {
        let TaskUpdateBuilder { api, record, .. } = &self.update_builder;
        if let Some(PartialAnswerLocation { attempt_id, channel, start_offset }) = self
            .subscription
            .partial_answer_location()
            .filter(|_| !self.options.sends_artifacts_at_end)
        {
            self.text_progress.switch_to_attempt(attempt_id);
            self.text_progress.skip_to(channel, start_offset);
            let next = self.text_progress.next_chunk_of(channel, api, record).await?;
            if let Some((text_range, text)) = next {
                return Ok(Some((
                    self.cursor(),
                    self.update_builder.answer_event(text, text_range.from > start_offset),
                )));
            }
        }
        if !self.options.includes_stderr {
            return Ok(None);
        }
        let next = self.text_progress.next_chunk_of(TextChannel::Stderr, api, record).await?;
        Ok(next.map(|(text_range, text)| {
            (self.cursor(), self.update_builder.stderr_event(text_range, &text))
        }))
    }

    /// Sends the end of the execution or its question; before that all artifacts, if none was sent so far.
    async fn enqueue_end_items(&mut self, record: &ExecutionRecord) -> Result<(), Failure> {
        let api = self.update_builder.api.clone();
        let view = TaskView::read(&api, record).await?;
        if self.options.sends_artifacts_at_end {
            self.ready_items.extend(
                view.artifact_events()
                    .filter_map(ArtifactChunks::from_event)
                    .map(StreamItem::Chunks),
            );
        }
        if let Some(update) = self.update_builder.final_event(&view).await? {
            let cursor = StreamCursor::from(record.last_event_number);
            self.ready_items.push_back(StreamItem::Update(cursor, Box::new(update)));
        }
        Ok(())
    }

    /// Returns the cursor after the last sent item.
    fn cursor(&self) -> StreamCursor {
        StreamCursor {
            event_number: self.last_event,
            byte_offset: self.byte_offset,
            text_cursor: self.text_progress.cursor(),
        }
    }
}
