//! Live feed of one execution: its events and the output of its program, each once and in order.

use std::time::Duration;

use hyper::header::{ACCEPT, HeaderName, HeaderValue};
use serde::de::DeserializeOwned;
use tokio::time::sleep;

use super::ServiceClient;
use super::feed_item::FeedItem;
use super::sse_stream::SseStream;
use crate::cli::error::CliError;
use crate::wire::api::ExecutionEntry;
use crate::wire::api::history::TextUpdate;

/// Maximum number of consecutive attempts to reopen a broken stream.
const MAX_REOPEN_ATTEMPTS: u32 = 5;

/// Pause before the next request to a service that did not respond.
const REOPEN_PAUSE: Duration = Duration::from_secs(1);

/// Stream of an execution. A broken stream is resumed at its last position.
pub(crate) struct ExecutionFeed {
    /// Id of the execution.
    id: String,
    stream: Option<SseStream>,
    /// Cursor after the last item.
    cursor: Option<String>,
    /// Channels whose texts are included, separated by commas.
    channels: &'static str,
    has_ended: bool,
}

/// Error of a stream that ends together with its service.
const STREAM_CUT_OFF: &str = "the stream ended before the task did";

/// True if a retry may succeed soon: the service is unavailable or restarts.
fn is_transient(error: &CliError) -> bool {
    match error {
        CliError::ConnectionLost { .. } | CliError::Unreachable { .. } => true,
        CliError::UnexpectedResponse { reason } => *reason == STREAM_CUT_OFF,
        _ => false,
    }
}

impl ExecutionFeed {
    /// Creates the feed of an execution from its start, with the texts of these channels.
    pub(crate) const fn new(id: String, channels: &'static str) -> Self {
        Self { id, stream: None, cursor: None, channels, has_ended: false }
    }

    /// Creates the feed of an execution without the output of its program.
    pub(crate) const fn without_output(id: String) -> Self {
        Self::new(id, "")
    }

    /// Returns the next item; `None` after the end of the execution and its last item.
    ///
    /// # Errors
    /// Fails if the service refuses, or does not respond for a while.
    pub(crate) async fn next(
        &mut self,
        client: &ServiceClient,
    ) -> Result<Option<FeedItem>, CliError> {
        let mut attempts = 0;
        loop {
            match self.read_next_item(client).await {
                Err(error) if is_transient(&error) && attempts < MAX_REOPEN_ATTEMPTS => {
                    // The next stream starts after the last item, so nothing is lost or shown twice.
                    (self.stream, attempts) = (None, attempts + 1);
                    sleep(REOPEN_PAUSE).await;
                }
                result => return result,
            }
        }
    }

    /// Returns the next relevant event. The future can be dropped without loss.
    async fn read_next_item(
        &mut self,
        client: &ServiceClient,
    ) -> Result<Option<FeedItem>, CliError> {
        if self.stream.is_none() {
            self.stream = Some(self.open(client).await?);
        }
        let Some(stream) = &mut self.stream else { return Ok(None) };
        while let Some(event) = stream.next().await? {
            self.cursor = stream.cursor().map(str::to_owned);
            match event.name.as_str() {
                "event" => {
                    return Ok(Some(FeedItem::Event(Box::new(parse_document(&event.data)?))));
                }
                "text" => {
                    let TextUpdate { channel, text, .. } = parse_document(&event.data)?;
                    return Ok(Some(FeedItem::Text(channel, text)));
                }
                "error" => return Err(CliError::RequestRefused(parse_document(&event.data)?)),
                "rest" => {
                    let entry: ExecutionEntry = parse_document(&event.data)?;
                    self.has_ended = entry.outcome.is_some(); // Otherwise it waits for an answer.
                }
                _ => {} // A place in a queue.
            }
        }
        if self.has_ended {
            Ok(None)
        } else {
            Err(CliError::UnexpectedResponse { reason: STREAM_CUT_OFF })
        }
    }

    async fn open(&self, client: &ServiceClient) -> Result<SseStream, CliError> {
        let text_query = match self.channels {
            "" => String::new(),
            channels => format!("?text={channels}"),
        };
        let path = format!("/api/v1/executions/{}/events{text_query}", self.id);
        let mut headers = vec![(ACCEPT, HeaderValue::from_static("text/event-stream"))];
        let cursor = self.cursor.as_deref().map(HeaderValue::from_str);
        if let Some(Ok(cursor)) = cursor {
            headers.push((HeaderName::from_static("last-event-id"), cursor));
        }
        client.open_stream(&path, &headers).await.map(SseStream::new)
    }
}

fn parse_document<T: DeserializeOwned>(data: &str) -> Result<T, CliError> {
    let invalid_event = |source| CliError::UnreadableResponse { source };
    serde_json::from_str(data).map_err(invalid_event)
}
