//! A connection that holds its place until it is closed, and that is closed when the other side does
//! not read what it is sent.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep};

/// A TCP connection and its place among those that may be open.
pub struct Counted {
    stream: TcpStream,
    unread: Unread,
    _place: OwnedSemaphorePermit,
}

/// How long the other side has left what was sent unread.
struct Unread {
    limit: Duration,
    by: Option<Pin<Box<Sleep>>>,
}

impl Counted {
    /// Holds a place for as long as the connection is open. It ends when nothing can be written for
    /// as long as `unread`.
    #[must_use]
    pub fn new(stream: TcpStream, place: OwnedSemaphorePermit, unread: Duration) -> Self {
        Self { stream, unread: Unread { limit: unread, by: None }, _place: place }
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
        Pin::new(&mut self.stream).poll_read(context, buffer)
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
