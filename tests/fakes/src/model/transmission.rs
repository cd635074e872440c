//! Transmission of an answer: whole, as a stream, or broken off as the prompt directs.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::{StreamExt as _, stream};

use crate::dialect::{ApiDialect, ModelAnswer, ModelStreamEvent};
use crate::directive::Directive;
use crate::model_request::ModelRequest;

const EVENT_STREAM_HEADERS: [(header::HeaderName, &str); 2] =
    [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
const JSON_HEADERS: [(header::HeaderName, &str); 1] = [(header::CONTENT_TYPE, "application/json")];

/// Sends an answer in the requested form.
pub(crate) fn answer_response(
    dialect: ApiDialect,
    request: &ModelRequest,
    answer: &ModelAnswer,
    directive: &Directive,
) -> Response {
    let pieces = if request.is_streamed {
        dialect.events(answer).into_iter().map(|event| Bytes::from(event_text(&event))).collect()
    } else {
        split_into_halves(&dialect.full_document(answer).to_string())
    };
    let body = answer_body(pieces, directive);
    if request.is_streamed {
        (EVENT_STREAM_HEADERS, body).into_response()
    } else {
        (JSON_HEADERS, body).into_response()
    }
}

/// Returns an HTML page where JSON is expected.
pub(crate) fn garbage_response() -> Response {
    (StatusCode::OK, JSON_HEADERS, "<html><body>a page of the proxy</body></html>").into_response()
}

fn answer_body(mut pieces: Vec<Bytes>, directive: &Directive) -> Body {
    let half_piece_count = pieces.len() / 2;
    if directive.is_set("drop") {
        pieces.truncate(half_piece_count);
        let reset_error = stream::once(async {
            tokio::task::yield_now().await; // The earlier pieces are sent first.
            Err(io::Error::from(io::ErrorKind::ConnectionReset))
        });
        return Body::from_stream(stream::iter(pieces.into_iter().map(Ok)).chain(reset_error));
    }
    let unsent_pieces =
        if directive.is_set("stall") { pieces.split_off(half_piece_count) } else { Vec::new() };
    if directive.is_set("cut") {
        pieces.truncate(half_piece_count);
    }
    let piece_delay =
        directive.seconds("drip").and_then(|drip| Duration::try_from_secs_f64(drip).ok());
    let piece_delay = piece_delay.unwrap_or_default();
    let piece_stream = stream::iter(pieces).enumerate().then(move |(number, piece)| async move {
        // Without a pause the pieces are sent together, as they were created.
        if number > 0 && !piece_delay.is_zero() {
            tokio::time::sleep(piece_delay).await;
        }
        Ok::<_, Infallible>(piece)
    });
    if unsent_pieces.is_empty() {
        Body::from_stream(piece_stream)
    } else {
        Body::from_stream(piece_stream.chain(stream::pending()))
    }
}

fn event_text(event: &ModelStreamEvent) -> String {
    let name = event.name.map(|name| format!("event: {name}\n")).unwrap_or_default();
    format!("{name}data: {}\n\n", event.data)
}

fn split_into_halves(text: &str) -> Vec<Bytes> {
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    let (first, second) = (bytes.slice(..bytes.len() / 2), bytes.slice(bytes.len() / 2..));
    vec![first, second]
}
