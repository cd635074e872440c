//! A connection that is closed when the other side does not say in time which HTTP it speaks.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// What HTTP/2 begins with. The version is told apart by it, without a timer of its own.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes in the clear, whatever carries them.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A connection on which a request must begin soon.
pub struct Opening {
    stream: Box<dyn Stream>,
    /// Until it is known which HTTP is spoken.
    first: Option<First>,
}

/// The first bytes, which may begin either HTTP.
struct First {
    seen: usize,
    by: Pin<Box<Sleep>>,
}

impl Opening {
    /// Ends when which HTTP is spoken is not known within `time`.
    #[must_use]
    pub fn new(stream: Box<dyn Stream>, time: Duration) -> Self {
        Self { stream, first: Some(First { seen: 0, by: Box::pin(sleep(time)) }) }
    }
}

impl First {
    /// Whether these further bytes tell which HTTP is spoken. The end of all bytes does too.
    fn is_told_by(&mut self, bytes: &[u8]) -> bool {
        let rest = PREFACE.get(self.seen..).unwrap_or_default();
        self.seen += bytes.len();
        bytes.is_empty() || self.seen >= PREFACE.len() || !rest.starts_with(bytes)
    }
}

impl AsyncRead for Opening {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let Some(first) = &mut self.first else {
            return read;
        };
        if read.is_pending() {
            ready!(first.by.as_mut().poll(context));
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "no request began")));
        }
        if first.is_told_by(buffer.filled().get(before..).unwrap_or_default()) {
            self.first = None;
        }
        read
    }
}

impl AsyncWrite for Opening {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
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
            let mut first = First { seen: 0, by: Box::pin(sleep(Duration::ZERO)) };
            pieces.iter().position(|piece| first.is_told_by(piece))
        };
        assert_eq!(told_after(&[b"GET / HTTP/1.1\r\n"]), Some(0));
        assert_eq!(told_after(&[b"P", b"OST / HTTP/1.1"]), Some(1));
        assert_eq!(told_after(&[b"P", b"RI * HTTP/2.0\r\n\r\nSM\r\n\r", b"\n"]), Some(2));
        assert_eq!(told_after(&[b"PRI * HTTP/2.0\r\n", b"\r\nSM\r\n\r\nmore"]), Some(1));
        assert_eq!(told_after(&[b"PRI * HTTP/2.0\r\n", b""]), Some(1));
        assert_eq!(told_after(&[b"P", b"R", b"I"]), None);
    }
}
