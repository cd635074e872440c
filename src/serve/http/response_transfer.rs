//! Responses in transfer: a limit for the memory that they hold, and the detection of a client that reads none of
//! them.
//!
//! Over HTTP/1 a client that does not read fills the socket, which its connection notices. Over HTTP/2 the window of
//! a stream may be closed while the connection stays alive. Therefore each piece of a response is observed until the
//! HTTP library drops it, which it does when the piece is written.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use algonius_a2a::problem;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::PrincipalId;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, HeaderValue, Version, header};
use axum::response::{IntoResponse, Response};
use futures_util::task::AtomicWaker;
use hyper::body::{Frame, SizeHint};
use tokio::time::Instant;

use super::caller_budget::{CallerBudget, CallerReservation};
use super::response::ProblemBody;

/// Number of bytes for the responses of all callers that exceed the allowances of their connections.
const BUDGET_BYTES: usize = 512 << 20;

/// Number of bytes that the responses of each connection may hold without counting towards the budget, so that a
/// client that reads its responses receives short ones while others of its caller use up the budget.
const CONNECTION_ALLOWANCE_BYTES: usize = 64 << 10;

/// Maximum size of a response that is never refused, in bytes: it may be the only copy of what a request created.
const SHORT_RESPONSE_BYTES: usize = 1 << 10;

/// Size of a piece of a response. Over HTTP/2 a client has to take one within the write timeout.
const HTTP1_PIECE_BYTES: usize = 64 << 10;
const HTTP2_PIECE_BYTES: usize = 16 << 10;

/// Creates the budget for the responses of all connections.
pub(super) fn response_budget() -> CallerBudget {
    CallerBudget::new(BUDGET_BYTES)
}

/// Responses in transfer on one connection.
pub struct ResponseTransfers {
    budget: CallerBudget,
    /// Bytes that count towards the allowance of the connection.
    allowance_bytes: AtomicUsize,
    /// Number of pieces of HTTP/2 that wait for the client.
    unread_count: AtomicUsize,
    /// Milliseconds from `created_at` to the last time at which such a piece was written.
    last_progress_ms: AtomicU64,
    /// Waker of the connection, for the first piece that waits.
    connection_waker: AtomicWaker,
    created_at: Instant,
}

impl ResponseTransfers {
    pub(super) fn new(budget: CallerBudget) -> Self {
        Self {
            budget,
            allowance_bytes: AtomicUsize::new(0),
            unread_count: AtomicUsize::new(0),
            last_progress_ms: AtomicU64::new(0),
            connection_waker: AtomicWaker::new(),
            created_at: Instant::now(),
        }
    }

    /// Returns the time since a piece was last written, if a piece waits for the client. The time counts for all
    /// responses together: a client may leave one stream unread while it reads another.
    pub(super) fn stall_duration(&self) -> Option<Duration> {
        (self.unread_count.load(Ordering::Acquire) > 0).then(|| {
            let last_progress = self.last_progress_ms.load(Ordering::Relaxed);
            self.created_at.elapsed().saturating_sub(Duration::from_millis(last_progress))
        })
    }

    /// Registers the task of the connection. It is woken when a piece begins to wait.
    pub(super) fn register_connection(&self, waker: &Waker) {
        self.connection_waker.register(waker);
    }

    /// Reserves memory for a part of a response; `None` if its caller has reached the limit.
    fn try_hold(self: &Arc<Self>, bytes: usize, caller: Option<PrincipalId>) -> Option<MemoryHold> {
        let add = |held: usize| Some(held + bytes).filter(|sum| *sum <= CONNECTION_ALLOWANCE_BYTES);
        let update = self.allowance_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        if update.is_ok() {
            return Some(MemoryHold::Allowance(Arc::clone(self), bytes));
        }
        let mut reservation = self.budget.start_reservation(caller);
        // One response always passes, whatever its size.
        reservation.try_grow_or_be_only(bytes).then_some(MemoryHold::Budget(reservation))
    }

    fn record_progress(&self) {
        let elapsed = u64::try_from(self.created_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_progress_ms.store(elapsed, Ordering::Relaxed);
    }
}

/// Memory that a response holds. Dropping the value releases it.
enum MemoryHold {
    /// Within the allowance of the connection.
    Allowance(Arc<ResponseTransfers>, usize),
    /// Beyond it.
    Budget(#[expect(dead_code, reason = "released when it is dropped")] CallerReservation),
}

impl Drop for MemoryHold {
    fn drop(&mut self) {
        if let Self::Allowance(transfers, bytes) = self {
            transfers.allowance_bytes.fetch_sub(*bytes, Ordering::Relaxed);
        }
    }
}

/// Piece of HTTP/2 that waits for its client.
struct PieceObservation(Arc<ResponseTransfers>);

impl PieceObservation {
    fn start(transfers: &Arc<ResponseTransfers>) -> Self {
        // Only the first wait starts the time: otherwise further requests would prolong it. The time is set before
        // the count shows it.
        let is_first = transfers.unread_count.load(Ordering::Acquire) == 0;
        if is_first {
            transfers.record_progress();
        }
        transfers.unread_count.fetch_add(1, Ordering::AcqRel);
        if is_first {
            transfers.connection_waker.wake();
        }
        Self(Arc::clone(transfers))
    }
}

impl Drop for PieceObservation {
    fn drop(&mut self) {
        self.0.record_progress();
        self.0.unread_count.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Piece of a response. The HTTP library drops it when it is written, or when its stream has ended.
struct Piece {
    bytes: Bytes,
    _hold: Option<Arc<MemoryHold>>,
    _observation: Option<PieceObservation>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Bounds the memory of a response until it is written, and observes over HTTP/2 that its client reads it.
///
/// # Errors
/// Returns the response if its caller has no memory left for it.
pub(in crate::serve) fn bound_transfer(
    response: Response,
    version: Version,
    transfers: &Arc<ResponseTransfers>,
    find_caller: impl FnOnce() -> Option<PrincipalId>,
) -> Result<Response, Box<Response>> {
    let is_http2 = version >= Version::HTTP_2;
    let known_bytes = response.body().size_hint().exact();
    // Over HTTP/1 a short response is written in one piece, and the connection has one response at a time.
    let is_one_piece = known_bytes.is_some_and(|bytes| bytes <= HTTP1_PIECE_BYTES as u64);
    if response.body().is_end_stream() || (is_one_piece && !is_http2) {
        return Ok(response);
    }
    let known_bytes = known_bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let caller = find_caller();
    let hold = match known_bytes.filter(|bytes| *bytes > SHORT_RESPONSE_BYTES) {
        Some(bytes) => match transfers.try_hold(bytes, caller) {
            Some(hold) => Some(Arc::new(hold)),
            None => return Err(Box::new(response)),
        },
        None => None,
    };
    let media_type = response.headers().get(header::CONTENT_TYPE);
    let is_grpc =
        media_type.is_some_and(|media_type| media_type.as_bytes().starts_with(b"application/grpc"));
    Ok(response.map(|body| {
        Body::new(TransferBody {
            body,
            unsent_bytes: Bytes::new(),
            has_known_size: known_bytes.is_some(),
            hold,
            transfers: Arc::clone(transfers),
            caller,
            is_http2,
            is_grpc,
        })
    }))
}

/// Returns the refusal that replaces a response for which its caller has no memory left. Later layers need the
/// extensions of the response.
pub(in crate::serve) fn refusal_for(mut response: Response) -> Response {
    let mut extensions = std::mem::take(response.extensions_mut());
    let mut refusal = ProblemBody(unread_failure()).into_response();
    extensions.extend(std::mem::take(refusal.extensions_mut()));
    *refusal.extensions_mut() = extensions;
    refusal
}

fn unread_failure() -> Failure {
    Failure::new(Code::Pressure, "too many responses of this caller wait to be read")
}

/// Body of a response in transfer, in pieces.
struct TransferBody {
    body: Body,
    /// Rest of the last frame of the body.
    unsent_bytes: Bytes,
    /// True if `hold` is for the whole body; otherwise it is for the last frame.
    has_known_size: bool,
    hold: Option<Arc<MemoryHold>>,
    transfers: Arc<ResponseTransfers>,
    caller: Option<PrincipalId>,
    is_http2: bool,
    is_grpc: bool,
}

impl TransferBody {
    /// Takes the next piece of the last frame.
    fn next_piece(&mut self) -> Option<Bytes> {
        let max_bytes = if self.is_http2 { HTTP2_PIECE_BYTES } else { HTTP1_PIECE_BYTES };
        let bytes = self.unsent_bytes.split_to(self.unsent_bytes.len().min(max_bytes));
        if bytes.is_empty() {
            return None;
        }
        let hold = self.hold.clone();
        if self.unsent_bytes.is_empty() && !self.has_known_size {
            self.hold = None; // The pieces have the memory of the frame now.
        }
        let observation = self.is_http2.then(|| PieceObservation::start(&self.transfers));
        Some(Bytes::from_owner(Piece { bytes, _hold: hold, _observation: observation }))
    }

    /// Takes over a frame with data. Returns false if the caller has no memory left for it.
    fn accept_data(&mut self, data: Bytes) -> bool {
        if !self.has_known_size {
            self.hold = self.transfers.try_hold(data.len(), self.caller).map(Arc::new);
            if self.hold.is_none() {
                return false;
            }
        }
        self.unsent_bytes = data;
        true
    }

    /// Ends a stream for which its caller has no memory left.
    fn end_with_refusal(&mut self) -> Option<Result<Frame<Bytes>, axum::Error>> {
        self.body = Body::empty();
        let refusal = unread_failure();
        if !self.is_grpc {
            // The client has to see that the stream is incomplete.
            return Some(Err(axum::Error::new(refusal.message)));
        }
        let (status, _, _) = problem::wire_codes(refusal.code).grpc.wire_values();
        let message = HeaderValue::from_str(&refusal.message).ok();
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from(status));
        trailers.extend(
            message.map(|message| (header::HeaderName::from_static("grpc-message"), message)),
        );
        Some(Ok(Frame::trailers(trailers)))
    }
}

impl HttpBody for TransferBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        loop {
            if let Some(piece) = self.next_piece() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        if !self.accept_data(data) {
                            return Poll::Ready(self.end_with_refusal());
                        }
                    }
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                end => return Poll::Ready(end),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.unsent_bytes.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let unsent_bytes = self.unsent_bytes.len() as u64;
        let hint = self.body.size_hint();
        let mut total = SizeHint::new();
        if let Some(upper) = hint.upper() {
            total.set_upper(upper.saturating_add(unsent_bytes));
        }
        total.set_lower(hint.lower().saturating_add(unsent_bytes));
        total
    }
}

#[cfg(test)]
mod tests;
