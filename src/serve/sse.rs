//! Events on their way out: one `data:` line each, under the number after which it can be taken up.

use std::convert::Infallible;
use std::time::Duration;

use algonius_actors::model::failure::Failure;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt};
use serde_json::Value;

use super::a2a::Events;
use super::answer::text;
use crate::wire::a2a::v1::StreamEvent;

/// A comment goes out when nothing else did for so long, so that proxies keep the connection.
const QUIET: Duration = Duration::from_secs(15);

/// A stream as server-sent events. `write` and `fail` give the JSON of an event and of a failure.
pub fn response(
    events: Events,
    write: impl Fn(StreamEvent) -> Value + Send + 'static,
    fail: impl Fn(&Failure) -> Value + Send + 'static,
) -> Response {
    let lines = events.map(move |next| {
        let event = match next {
            Ok((number, event)) => {
                Event::default().id(number.to_string()).data(text(&write(event)))
            }
            Err(failure) => Event::default().data(text(&fail(&failure))),
        };
        Ok::<_, Infallible>(event)
    });
    stream(lines)
}

/// Lines as server-sent events, which nothing on the way keeps back.
pub fn stream(lines: impl Stream<Item = Result<Event, Infallible>> + Send + 'static) -> Response {
    let mut response = Sse::new(lines).keep_alive(KeepAlive::new().interval(QUIET)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// A refusal as the only event, for those who read nothing but events.
pub fn refusal(body: &Value) -> Response {
    let event = Event::default().data(text(body));
    Sse::new(futures_util::stream::iter([Ok::<_, Infallible>(event)])).into_response()
}

/// Whether a caller reads events.
#[must_use]
pub fn is_read(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepts.is_some_and(|accepts| accepts.contains("text/event-stream"))
}
