//! A connection that holds its place until it is closed, and that is closed when the other side
//! neither says which HTTP it speaks nor reads what it is sent.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep};

/// What HTTP/2 begins with. The version is told apart by it, without a timer of its own.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A TCP connection and its place among those that may be open.
pub struct Counted {
    stream: TcpStream,
    /// Until it is known which HTTP is spoken.
    opening: Option<Opening>,
    unread: Unread,
    _place: OwnedSemaphorePermit,
}

/// The first bytes, which may begin either HTTP.
struct Opening {
    seen: usize,
    by: Pin<Box<Sleep>>,
}

/// How long the other side has left what was sent unread.
struct Unread {
    limit: Duration,
    by: Option<Pin<Box<Sleep>>>,
}

impl Counted {
    /// Holds a place for as long as the connection is open. It ends when which HTTP is spoken is not
    /// known within `opening`, and when nothing can be written for as long as `unread`.
    #[must_use]
    pub fn new(
        stream: TcpStream,
        place: OwnedSemaphorePermit,
        opening: Duration,
        unread: Duration,
    ) -> Self {
        let opening = Some(Opening { seen: 0, by: Box::pin(sleep(opening)) });
        Self { stream, opening, unread: Unread { limit: unread, by: None }, _place: place }
    }

    fn poll_with<T>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let written = write(Pin::new(&mut self.stream), context);
        self.unread.mind(context, written)
    }
}

impl Opening {
    /// Whether these further bytes tell which HTTP is spoken. The end of all bytes does too.
    fn is_told_by(&mut self, bytes: &[u8]) -> bool {
        let rest = PREFACE.get(self.seen..).unwrap_or_default();
        self.seen += bytes.len();
        bytes.is_empty() || self.seen >= PREFACE.len() || !rest.starts_with(bytes)
    }
}

impl Unread {
    fn mind<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.by = None;
            return written;
        }
        let limit = self.limit;
        let by = self.by.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(by.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "what was sent stays unread")))
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let Some(opening) = &mut self.opening else {
            return read;
        };
        if read.is_pending() {
            ready!(opening.by.as_mut().poll(context));
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "no request began")));
        }
        if opening.is_told_by(buffer.filled().get(before..).unwrap_or_default()) {
            self.opening = None;
        }
        read
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_with(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_with(context, |stream, context| stream.poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn which_http_is_spoken_is_known_as_soon_as_it_can_be() {
        let told_after = |pieces: &[&[u8]]| {
            let mut opening = Opening { seen: 0, by: Box::pin(sleep(Duration::ZERO)) };
            pieces.iter().position(|piece| opening.is_told_by(piece))
        };
        assert_eq!(told_after(&[b"GET / HTTP/1.1\r\n"]), Some(0));
        assert_eq!(told_after(&[b"P", b"OST / HTTP/1.1"]), Some(1));
        assert_eq!(told_after(&[b"P", b"RI * HTTP/2.0\r\n\r\nSM\r\n\r", b"\n"]), Some(2));
        assert_eq!(told_after(&[b"PRI * HTTP/2.0\r\n", b"\r\nSM\r\n\r\nmore"]), Some(1));
        assert_eq!(told_after(&[b"PRI * HTTP/2.0\r\n", b""]), Some(1));
        assert_eq!(told_after(&[b"P", b"R", b"I"]), None);
    }
}
