//! Unread bodies. A response that is sent before the body of its request was read ends the connection, so a short
//! body is read before the response; after a longer one the close of the connection lingers.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, Version, header};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use tokio::sync::oneshot;

use super::connections::ClientConnection;

/// Maximum size of a body that is read and discarded, in bytes.
const MAX_DRAIN_BYTES: usize = 1 << 20;

/// Maximum time to wait for the rest of a body.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Body that is returned when it is dropped before its end.
struct ReturnOnDropBody {
    body: Option<Body>,
    body_sender: Option<oneshot::Sender<Body>>,
}

impl HttpBody for ReturnOnDropBody {
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

impl Drop for ReturnOnDropBody {
    fn drop(&mut self) {
        // The drop is the only moment that all handlers share, also those that fail before they read the body.
        let unread = self.body.take().filter(|body| !body.is_end_stream());
        if let Some((unread, body_sender)) = unread.zip(self.body_sender.take()) {
            _ = body_sender.send(unread); // The request may have been given up.
        }
    }
}

/// Unread rest of the body of a request of HTTP/1.
pub(in crate::serve) struct UnreadBody {
    /// Receives the body again, unless it was read to its end.
    body_receiver: oneshot::Receiver<Body>,
    /// True if the client waits for a `100 Continue`, and sends no body after another answer.
    expects_continue: bool,
    connection: ClientConnection,
}

/// Makes a request return the unread part of its body. HTTP/2 ends a request without its connection, and a
/// request without a body has no such part.
pub(in crate::serve) fn track_unread_body(
    request: Request,
    connection: &ClientConnection,
) -> (Request, Option<UnreadBody>) {
    // A reset of the stream ends such a request, and the connection stays usable.
    if request.version() >= Version::HTTP_2 || request.body().is_end_stream() {
        return (request, None);
    }
    let (body_sender, body_receiver) = oneshot::channel();
    let expects_continue = request.headers().contains_key(header::EXPECT);
    let return_on_drop =
        |body| Body::new(ReturnOnDropBody { body: Some(body), body_sender: Some(body_sender) });
    (
        request.map(return_on_drop),
        Some(UnreadBody { body_receiver, expects_continue, connection: connection.clone() }),
    )
}

/// Sends the answer after the body has been read, if the body is short and arrives soon.
/// Otherwise the answer closes the connection, and the service discards input for a short time,
/// so that the client can read the answer.
pub(in crate::serve) async fn drain_or_close(
    unread_body: Option<UnreadBody>,
    mut response: Response,
) -> Response {
    let Some(UnreadBody { mut body_receiver, expects_continue, connection }) = unread_body else {
        return response;
    };
    // The handler has dropped the request by now, so the body is back already or was read to its end.
    let Ok(body) = body_receiver.try_recv() else { return response };
    // A response about the length of a body does not wait for that body.
    let is_too_large = response.status() == StatusCode::PAYLOAD_TOO_LARGE;
    if expects_continue || is_too_large || !drain_to_end(body).await {
        connection.set_lingering();
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// True if the end of a body was reached.
async fn drain_to_end(mut body: Body) -> bool {
    // A declared length decides at once; reading up to the limit would only delay the response.
    if body.size_hint().lower() > MAX_DRAIN_BYTES as u64 {
        return false;
    }
    let read_to_end = async {
        let mut read_bytes = 0;
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return false };
            read_bytes += frame.data_ref().map_or(0, Bytes::len);
            if read_bytes > MAX_DRAIN_BYTES {
                return false;
            }
        }
        true
    };
    tokio::time::timeout(DRAIN_TIMEOUT, read_to_end).await.unwrap_or(false)
}
