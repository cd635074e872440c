//! Server-sent events: one `data:` line for each event, with the cursor after which the stream can be resumed.

use std::convert::Infallible;
use std::time::Duration;

use algonius_a2a::v1::StreamEvent;
use algonius_actors::model::failure::Failure;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt};
use serde_json::Value;

use super::streaming::ResumableEvents;
use crate::serve::http::response::to_json_text;

/// Interval of silence after which a comment is sent, so that proxies keep the connection open.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Sends a stream as server-sent events. `write_event` and `write_failure` return the JSON of an event and of a
/// failure.
pub fn stream_events(
    events: ResumableEvents,
    write_event: impl Fn(StreamEvent) -> Value + Send + 'static,
    write_failure: impl Fn(&Failure) -> Value + Send + 'static,
) -> Response {
    let sse_events = events.map(move |item| {
        let event = match item {
            Ok((cursor, event)) => {
                Event::default().id(cursor.to_string()).data(to_json_text(&write_event(event)))
            }
            Err(failure) => Event::default().data(to_json_text(&write_failure(&failure))),
        };
        Ok::<_, Infallible>(event)
    });
    to_response(sse_events)
}

/// Sends lines as server-sent events, with headers that disable buffering in proxies.
pub fn to_response(
    sse_events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static,
) -> Response {
    let mut response = Sse::new(sse_events)
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE_INTERVAL))
        .into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // nginx collects a response by default, which would hold back every event until its buffer is full.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Sends a refusal as the only event, for clients that read nothing but events.
pub fn single_event_response(body: &Value) -> Response {
    let event = Event::default().data(to_json_text(body));
    Sse::new(futures_util::stream::iter([Ok::<_, Infallible>(event)])).into_response()
}

/// True if the client accepts event streams.
#[must_use]
pub fn accepts_event_stream(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/event-stream"))
}
