//! Lingering close: for a short time, reads and discards bytes that a client still sends.
//!
//! The kernel resets a socket that is closed while bytes are unread, and a client that is still writing its
//! request would lose the answer that was sent before. So the end of the stream is sent first, and the socket
//! is closed once the client has closed its side or is silent.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Maximum silence of a client before the socket is closed.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum total duration.
const LINGER_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of discarded bytes.
const MAX_DISCARDED_BYTES: usize = 128 << 20;

/// Number of bytes in one read.
const READ_BUFFER_BYTES: usize = 16 << 10;

/// Progress of a lingering close.
pub(super) struct LingeringClose {
    discarded_bytes: usize,
    deadline: Instant,
    timer: Pin<Box<Sleep>>,
}

impl LingeringClose {
    /// Starts a lingering close.
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            discarded_bytes: 0,
            deadline: now + LINGER_TIMEOUT,
            timer: Box::pin(sleep_until(now + SILENCE_TIMEOUT)),
        }
    }

    /// Discards received bytes. Returns ready when the socket may be closed.
    pub(super) fn poll(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let mut storage = [0; READ_BUFFER_BYTES];
        loop {
            let mut buffer = ReadBuf::new(&mut storage);
            match Pin::new(&mut *stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    self.discarded_bytes += buffer.filled().len();
                    // A client that sends without end would otherwise hold its connection for the whole time.
                    if self.discarded_bytes > MAX_DISCARDED_BYTES {
                        return Poll::Ready(());
                    }
                    let next_silence_end = (Instant::now() + SILENCE_TIMEOUT).min(self.deadline);
                    self.timer.as_mut().reset(next_silence_end);
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => {
                    // The timer is polled only while no bytes are there, because each read moves it.
                    ready!(self.timer.as_mut().poll(context));
                    return Poll::Ready(());
                }
            }
            // A client that always has bytes ready never reaches the timer above.
            if Instant::now() >= self.deadline {
                return Poll::Ready(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;

    /// Returns the seconds until the service closes the connection of a client that sends with these pauses.
    async fn seconds_until_close(pause: Duration, pieces: usize) -> u64 {
        let (mut client_stream, mut server_stream) = duplex(1 << 20);
        let client = tokio::spawn(async move {
            for _ in 0..pieces {
                if client_stream.write_all(b"more").await.is_err() {
                    return;
                }
                tokio::time::sleep(pause).await;
            }
            std::future::pending::<()>().await;
        });
        let (started_at, mut linger) = (Instant::now(), LingeringClose::new());
        poll_fn(|context| linger.poll(&mut server_stream, context)).await;
        client.abort();
        started_at.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_lingering_close_ends_on_silence_or_after_ten_seconds() {
        assert_eq!(seconds_until_close(Duration::ZERO, 0).await, 1);
        assert_eq!(seconds_until_close(Duration::from_millis(900), 4).await, 3);
        assert_eq!(seconds_until_close(Duration::from_millis(900), 1000).await, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lingering_close_ends_at_once_for_a_closed_client() {
        let (client_stream, mut server_stream) = duplex(1 << 10);
        drop(client_stream);
        let started_at = Instant::now();
        let mut linger = LingeringClose::new();
        poll_fn(|context| linger.poll(&mut server_stream, context)).await;
        assert!(started_at.elapsed().is_zero());
    }
}
