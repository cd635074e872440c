//! Long answers end when the credentials that asked for them count no longer.

use std::pin::Pin;
use std::task::{Context, Poll};

use algonius_actors::model::principal::Caller;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use super::App;
use super::changing::Latest;

/// Media types of answers that go on while something happens.
const LONG: [&str; 2] = ["text/event-stream", "application/grpc"];

/// Has a long answer go on for as long as those who asked for it may enter as they did. Each piece is
/// looked at, so that nothing is told after a token was revoked or has expired.
pub(super) fn mind(response: Response, headers: HeaderMap, asked: &App, now: &Latest) -> Response {
    let media = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if !media.is_some_and(|media| LONG.iter().any(|long| media.starts_with(long))) {
        return response;
    }
    let caller = asked.guard.standing(&headers, asked.gateway.now());
    let now = now.clone();
    response.map(|body| Body::new(Minded { body, headers, caller, now }))
}

/// A body that ends early when its caller has lost the right to it.
struct Minded {
    body: Body,
    headers: HeaderMap,
    caller: Option<Caller>,
    now: Latest,
}

impl Minded {
    /// Whether the credentials still stand for whom they stood at the beginning.
    fn is_good(&self) -> bool {
        let app = self.now.app();
        let standing = app.map(|app| app.guard.standing(&self.headers, app.gateway.now()));
        standing.is_none_or(|standing| standing == self.caller)
    }
}

impl HttpBody for Minded {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let next = Pin::new(&mut self.body).poll_frame(context);
        let tells = matches!(&next, Poll::Ready(Some(Ok(frame))) if frame.is_data());
        if tells && !self.is_good() {
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
