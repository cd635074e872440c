//! Tests of responses in transfer, without a connection.

use std::convert::Infallible;

use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use uuid::Uuid;

use super::*;

fn caller(number: u8) -> Option<PrincipalId> {
    Some(PrincipalId(Uuid::from_bytes([number; 16])))
}

/// Returns the transfers of a connection whose allowance is used up.
fn transfers_without_allowance(budget_bytes: usize) -> (Arc<ResponseTransfers>, MemoryHold) {
    let transfers = Arc::new(ResponseTransfers::new(CallerBudget::new(budget_bytes)));
    let allowance = transfers.try_hold(CONNECTION_ALLOWANCE_BYTES, None).expect("the allowance");
    (transfers, allowance)
}

/// Returns a response whose length is not known, with one frame of each of these lengths.
fn stream_response(media_type: &'static str, frame_lengths: &[usize]) -> Response {
    let frames: Vec<_> =
        frame_lengths.iter().map(|bytes| Frame::data(Bytes::from(vec![b'a'; *bytes]))).collect();
    let frames = stream::iter(frames.into_iter().map(Ok::<_, Infallible>));
    let headers = [(header::CONTENT_TYPE, media_type)];
    (headers, Body::new(StreamBody::new(frames))).into_response()
}

async fn piece_lengths(response: Response) -> Vec<usize> {
    let mut body = response.into_body();
    let mut lengths = Vec::new();
    while let Some(frame) = body.frame().await {
        lengths.push(frame.expect("no error").into_data().expect("data").len());
    }
    lengths
}

#[tokio::test]
async fn a_response_is_transferred_in_pieces() {
    let transfers = Arc::new(ResponseTransfers::new(response_budget()));
    for (version, expected) in [
        (Version::HTTP_2, &[16_384, 16_384, 16_384, 16_384, 16_384, 16_384, 1_696][..]),
        (Version::HTTP_11, &[65_536, 34_464]),
    ] {
        let response = Response::new(Body::from(vec![b'a'; 100_000]));
        let response = bound_transfer(response, version, &transfers, || None).expect("memory");
        assert_eq!(response.body().size_hint().exact(), Some(100_000));
        assert_eq!(piece_lengths(response).await, expected, "{version:?}");
    }
    let frames = stream_response("text/event-stream", &[3, 20_000, 1]);
    let frames = bound_transfer(frames, Version::HTTP_2, &transfers, || None).expect("memory");
    assert_eq!(piece_lengths(frames).await, [3, 16_384, 3_616, 1]);
    assert_eq!(transfers.allowance_bytes.load(Ordering::Relaxed), 0);
    assert_eq!(transfers.stall_duration(), None);
}

#[tokio::test]
async fn a_response_beyond_the_memory_of_its_caller_is_refused() {
    let (transfers, _allowance) = transfers_without_allowance(400_000);
    let respond = |number: u8| {
        let response = Response::new(Body::from(vec![b'a'; 90_000]));
        bound_transfer(response, Version::HTTP_11, &transfers, || caller(number))
    };
    let first = respond(1).expect("the first one");
    assert!(respond(2).is_ok(), "another caller");
    let refusal = refusal_for(*respond(1).expect_err("the second one"));
    assert_eq!(refusal.status().as_u16(), 503);
    let short = Response::new(Body::from(vec![b'a'; SHORT_RESPONSE_BYTES]));
    assert!(bound_transfer(short, Version::HTTP_2, &transfers, || caller(1)).is_ok());
    // A piece that the connection still has keeps the memory of its document.
    let piece = first.into_body().frame().await;
    assert!(respond(1).is_err());
    drop(piece);
    assert!(respond(1).is_ok());
}

#[tokio::test]
async fn a_stream_beyond_the_memory_of_its_caller_ends() {
    let (transfers, _allowance) = transfers_without_allowance(400_000);
    let respond = |media_type| {
        let response = stream_response(media_type, &[90_000, 90_000]);
        let response = bound_transfer(response, Version::HTTP_2, &transfers, || caller(1));
        response.expect("a stream").into_body()
    };
    let mut first = respond("text/event-stream");
    let mut pieces = Vec::new();
    for _ in 0..6 {
        pieces.push(first.frame().await.expect("a piece").expect("no error"));
    }
    assert!(respond("text/event-stream").frame().await.expect("an end").is_err());
    let mut call = respond("application/grpc+proto");
    let trailers = call.frame().await.expect("an end").expect("no error").into_trailers();
    let trailers = trailers.expect("trailers");
    assert_eq!(trailers["grpc-status"], "14");
    assert!(trailers.contains_key("grpc-message"));
    assert!(call.frame().await.is_none());
    // The first frame was read, and the stream waits for its next one.
    drop(pieces);
    let rest = respond("application/grpc");
    assert_eq!(piece_lengths(Response::new(rest)).await.iter().sum::<usize>(), 180_000);
}

#[tokio::test(start_paused = true)]
async fn only_a_client_that_takes_no_piece_is_stalled() {
    let transfers = Arc::new(ResponseTransfers::new(response_budget()));
    let respond = || {
        let response = Response::new(Body::from(vec![b'a'; 100]));
        let response = bound_transfer(response, Version::HTTP_2, &transfers, || None);
        response.expect("memory").into_body()
    };
    let second = Duration::from_secs(1);
    let (mut unread, mut read) = (respond(), respond());
    tokio::time::advance(second).await;
    assert_eq!(transfers.stall_duration(), None, "nothing was handed over");
    let unread_piece = unread.frame().await;
    // The connection has all of it, and its client does not take it.
    drop(unread);
    tokio::time::advance(second * 5).await;
    assert_eq!(transfers.stall_duration(), Some(second * 5));
    let read_piece = read.frame().await;
    assert_eq!(transfers.stall_duration(), Some(second * 5), "a further response is no progress");
    drop(read_piece);
    assert_eq!(transfers.stall_duration(), Some(Duration::ZERO));
    tokio::time::advance(second).await;
    assert_eq!(transfers.stall_duration(), Some(second));
    drop(unread_piece);
    assert_eq!(transfers.stall_duration(), None);
}
