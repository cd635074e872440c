//! Live events and texts of an execution as server-sent events.

use std::convert::Infallible;

use algonius_a2a::problem;
use algonius_actors::api::{Api, Subscription, SubscriptionItem};
use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::execution::event::{TextChannel, TextRange};
use algonius_actors::model::execution::record::ExecutionRecord;
use algonius_actors::model::failure::Failure;
use axum::response::Response;
use axum::response::sse::Event;
use serde::Serialize;

use crate::serve::a2a::sse;
use crate::serve::a2a::streaming::stream_cursor::StreamCursor;
use crate::serve::a2a::streaming::text_progress::{TextProgress, is_end_of_work};
use crate::wire::api::ExecutionEntry;
use crate::wire::api::history::{TextUpdate, WaitingPosition};

/// Streams an execution from a position to its end, with the texts of these channels.
pub(super) fn response(
    api: Api,
    record: ExecutionRecord,
    after: &StreamCursor,
    channels: &[TextChannel],
) -> Response {
    let subscription =
        Subscription::new(api.reader.clone(), record.clone(), after.event_number, None)
            .continue_past_questions();
    let subscription = if channels.is_empty() { subscription } else { subscription.with_text() };
    // A stream from the start contains all attempts; a later one starts with the present attempt.
    let attempt_id = if after.event_number == 0 { AttemptId::FIRST } else { record.attempt_id };
    let text_progress = TextProgress::new(attempt_id, channels);
    let text_progress = after
        .text_cursor
        .as_ref()
        .map_or(text_progress.clone(), |known_cursor| text_progress.with_cursor(known_cursor));
    let includes_text = !channels.is_empty();
    let last_event = after.event_number;
    let execution_stream = ExecutionStream {
        api,
        record,
        subscription,
        text_progress,
        includes_text,
        last_event,
        pending_item: None,
        may_have_unsent_text: false,
    };
    sse::to_response(futures_util::stream::unfold(
        Some(execution_stream),
        async |execution_stream| {
            let mut execution_stream = execution_stream?;
            match execution_stream.next().await {
                Ok(None) => None,
                Ok(Some(line)) => Some((Ok::<_, Infallible>(line), Some(execution_stream))),
                // The status was sent with the first bytes, so a failure can only be an event.
                Err(failure) => Some((Ok(error_event(&failure)), None)),
            }
        },
    ))
}

/// The rest of an execution that a stream has yet to send.
struct ExecutionStream {
    api: Api,
    record: ExecutionRecord,
    subscription: Subscription,
    text_progress: TextProgress,
    includes_text: bool,
    /// Number of the last event that was sent.
    last_event: u64,
    /// The item that follows all text that exists now.
    pending_item: Option<SubscriptionItem>,
    /// True if there may be text that was not sent.
    may_have_unsent_text: bool,
}

impl ExecutionStream {
    async fn next(&mut self) -> Result<Option<Event>, Failure> {
        loop {
            if self.may_have_unsent_text {
                match self.text_progress.next_chunk(&self.api, &self.record).await? {
                    Some((range, text)) => return Ok(Some(self.text_event(range, text))),
                    None => self.may_have_unsent_text = false,
                }
            }
            if let Some(item) = self.pending_item.take() {
                return Ok(self.sse_event_for(item));
            }
            match self.subscription.next().await? {
                None => return Ok(None),
                Some(SubscriptionItem::TextAvailable(_)) => self.may_have_unsent_text = true,
                Some(item) => {
                    self.may_have_unsent_text = self.includes_text && is_end_of_text(&item);
                    // Text that exists now precedes the event that ends it, so the event waits.
                    self.pending_item = Some(item);
                }
            }
        }
    }

    /// Only recorded items have a position after which a client can resume the stream.
    fn sse_event_for(&mut self, item: SubscriptionItem) -> Option<Event> {
        Some(match item {
            SubscriptionItem::Event(event) => {
                self.text_progress.apply_event(&event.data);
                self.last_event = event.number;
                Event::default().id(self.cursor()).event("event").data(to_json_text(&event))
            }
            SubscriptionItem::Queued(queued) => {
                let position = WaitingPosition { queue: queued, message: queued.to_string() };
                Event::default().event("queued").data(to_json_text(&position))
            }
            SubscriptionItem::EndOrQuestion(record) => {
                let entry = ExecutionEntry::from(&*record);
                Event::default().event("rest").data(to_json_text(&entry))
            }
            // The loop handles growth before it gets here.
            SubscriptionItem::TextAvailable(_) => return None,
        })
    }

    fn text_event(&self, range: TextRange, text: String) -> Event {
        let TextRange { attempt_id, channel, from, to } = range;
        let update = TextUpdate { attempt_id, channel, from, to, text };
        Event::default().id(self.cursor()).event("text").data(to_json_text(&update))
    }

    fn cursor(&self) -> String {
        StreamCursor {
            event_number: self.last_event,
            byte_offset: 0,
            text_cursor: self.text_progress.cursor(),
        }
        .to_string()
    }
}

/// Returns true if the attempt produces no more text after `item`, so that all of its text is sent before.
fn is_end_of_text(item: &SubscriptionItem) -> bool {
    match item {
        SubscriptionItem::Event(event) => is_end_of_work(&event.data),
        SubscriptionItem::EndOrQuestion(_) => true,
        SubscriptionItem::Queued(_) | SubscriptionItem::TextAvailable(_) => false,
    }
}

/// Serializes a shape. All shapes here are valid JSON, so serialization does not fail.
fn to_json_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn error_event(failure: &Failure) -> Event {
    Event::default().event("error").data(to_json_text(&problem::problem_document(failure)))
}
