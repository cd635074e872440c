//! Hears a request out before it is answered: where an answer overtakes the body of its request, the
//! connection is closed, and who still writes may find it broken before the answer is read.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderValue, Version, header};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use tokio::sync::oneshot;

/// The most that is heard for nothing, in bytes: of a larger body the connection is closed.
const MOST: usize = 1 << 20;

/// How long the rest of a body is waited for.
const LONGEST: Duration = Duration::from_secs(1);

/// A body that is given back when it is dropped before its end.
struct Lent {
    body: Option<Body>,
    back: Option<oneshot::Sender<Body>>,
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            self.body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let rest = self.body.take().filter(|body| !body.is_end_stream());
        if let Some((rest, back)) = rest.zip(self.back.take()) {
            _ = back.send(rest); // The request may have been given up.
        }
    }
}

/// What a request leaves of its body, where it has one that is waited for.
pub(super) type Rest = Option<oneshot::Receiver<Body>>;

/// Has a request give back what nobody reads of its body. HTTP/2 ends a request without its connection,
/// and who asks whether to go on is told by the answer.
pub(super) fn lend(request: Request) -> (Request, Rest) {
    let is_awaited =
        request.version() < Version::HTTP_2 && !request.headers().contains_key(header::EXPECT);
    if !is_awaited || request.body().is_end_stream() {
        return (request, None);
    }
    let (back, rest) = oneshot::channel();
    let lent = |body| Body::new(Lent { body: Some(body), back: Some(back) });
    (request.map(lent), Some(rest))
}

/// Answers once the body has been heard, if it is short and comes soon; says otherwise that the
/// connection is closed.
pub(super) async fn hear_out(rest: Rest, mut response: Response) -> Response {
    let rest = rest.and_then(|mut rest| rest.try_recv().ok());
    if let Some(rest) = rest
        && !is_heard(rest).await
    {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Whether the end of a body was reached.
async fn is_heard(mut body: Body) -> bool {
    if body.size_hint().lower() > MOST as u64 {
        return false;
    }
    let heard = async {
        let mut heard = 0;
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return false };
            heard += frame.data_ref().map_or(0, Bytes::len);
            if heard > MOST {
                return false;
            }
        }
        true
    };
    tokio::time::timeout(LONGEST, heard).await.unwrap_or(false)
}
