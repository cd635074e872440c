//! Revocation for long responses: a stream ends when the credentials of its request are no longer valid.

use std::pin::Pin;
use std::task::{Context, Poll};

use algonius_actors::model::access::principal::Caller;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use crate::serve::AppState;

/// Media types of streams.
const STREAM_MEDIA_TYPES: [&str; 2] = ["text/event-stream", "application/grpc"];

/// Ends a stream as soon as its caller is no longer authorized as before. Each piece is checked, so that nothing is
/// sent after a token was revoked or has expired. `current_app` returns the state of the configuration in force.
pub(in crate::serve) fn end_when_revoked<F>(
    response: Response,
    credential_headers: HeaderMap,
    app: &AppState,
    current_app: F,
) -> Response
where
    F: Fn() -> Option<AppState> + Unpin + Send + 'static,
{
    let media_type =
        response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if !media_type.is_some_and(|media_type| {
        STREAM_MEDIA_TYPES.iter().any(|stream_type| media_type.starts_with(stream_type))
    }) {
        return response;
    }
    let caller = app
        .access_control
        .authenticator
        .find_caller_for_any_agent(&credential_headers, app.api.reader.now());
    response.map(|body| Body::new(RevocableBody { body, credential_headers, caller, current_app }))
}

/// Body that ends early if its caller loses the right to it.
struct RevocableBody<F> {
    body: Body,
    credential_headers: HeaderMap,
    caller: Option<Caller>,
    /// Returns the state of the configuration in force.
    current_app: F,
}

impl<F: Fn() -> Option<AppState>> RevocableBody<F> {
    /// True if the credentials still identify the same caller as at the start.
    fn is_still_authorized(&self) -> bool {
        let app = (self.current_app)();
        let current_caller = app.map(|app| {
            app.access_control
                .authenticator
                .find_caller_for_any_agent(&self.credential_headers, app.api.reader.now())
        });
        // Equality of the whole caller: a token whose scope became smaller ends the stream too.
        current_caller.is_none_or(|current_caller| current_caller == self.caller)
    }
}

impl<F: Fn() -> Option<AppState> + Unpin> HttpBody for RevocableBody<F> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let next = Pin::new(&mut self.body).poll_frame(context);
        let has_data = matches!(&next, Poll::Ready(Some(Ok(frame))) if frame.is_data());
        // The end of a stream and its trailers carry no data, so they pass without a check.
        if has_data && !self.is_still_authorized() {
            self.body = Body::empty();
            return Poll::Ready(None);
        }
        next
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
