//! TCP connection with its entry in the table of connections. The connection is closed if the peer does not read the
//! sent bytes, and its close lingers for a short time to discard unread input.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use super::connections::{ClientConnection, ConnectionEntry};
use super::lingering_close::LingeringClose;
use super::response_transfer::ResponseTransfers;

/// Time between the end of the timeout for unread responses and the end of the connection.
const LAST_CHECK_DELAY: Duration = Duration::from_millis(500);

/// TCP connection and its entry in the table of connections.
pub struct CountedConnection {
    /// Declared before the stream, because fields are dropped in this order: the entry contains the number of the
    /// socket, which another file may get as soon as the socket is closed.
    _entry: ConnectionEntry,
    stream: TcpStream,
    write_timeout: WriteTimeout,
    unread_timeout: UnreadTimeout,
    connection: ClientConnection,
    lingering_close: Option<LingeringClose>,
}

/// Timer for responses that the peer does not permit to be sent: over HTTP/2 such a peer may read everything else.
struct UnreadTimeout {
    max_stall: Duration,
    next_check: Option<Pin<Box<Sleep>>>,
    /// True if the next check is the last one.
    is_last_check: bool,
}

/// Timer for sent bytes that the peer does not read.
struct WriteTimeout {
    max_stall: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl CountedConnection {
    /// Holds the entry while the connection is open. The connection is closed if nothing can be written for the time
    /// `write_timeout`.
    #[must_use]
    pub fn new(
        stream: TcpStream,
        (entry, connection): (ConnectionEntry, ClientConnection),
        write_timeout: Duration,
    ) -> Self {
        Self {
            _entry: entry,
            stream,
            write_timeout: WriteTimeout { max_stall: write_timeout, deadline: None },
            unread_timeout: UnreadTimeout {
                max_stall: write_timeout,
                next_check: None,
                is_last_check: false,
            },
            connection,
            lingering_close: None,
        }
    }

    fn poll_write_with<T>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let write_result = write(Pin::new(&mut self.stream), context);
        self.write_timeout.fail_if_stalled(context, write_result)
    }
}

impl UnreadTimeout {
    /// Returns ready if no piece of any response was written for the maximum time. Otherwise wakes the task for the
    /// next check, as long as a piece waits.
    fn poll_stalled(
        &mut self,
        context: &mut Context<'_>,
        transfers: &ResponseTransfers,
    ) -> Poll<()> {
        transfers.register_connection(context.waker());
        loop {
            let Some(stall) = transfers.stall_duration() else { return Poll::Pending };
            let remaining = self.max_stall.saturating_sub(stall);
            if remaining.is_zero() && self.is_last_check && self.next_check.is_none() {
                return Poll::Ready(());
            }
            // A timer that is set stays: it fires early at most, and most responses are read before.
            let next_check = self.next_check.get_or_insert_with(|| {
                self.is_last_check = remaining.is_zero();
                // After a pause of the whole process, permissions of the peer may wait in the socket.
                let delay = if remaining.is_zero() { LAST_CHECK_DELAY } else { remaining };
                Box::pin(sleep(delay))
            });
            ready!(next_check.as_mut().poll(context));
            self.next_check = None;
        }
    }
}

impl WriteTimeout {
    fn fail_if_stalled<T>(
        &mut self,
        context: &mut Context<'_>,
        write_result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        // Any progress counts: a slow reader is allowed, a reader that stopped is not.
        if write_result.is_ready() {
            // The timer starts anew with the next write that finds no room.
            self.deadline = None;
            return write_result;
        }
        let limit = self.max_stall;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(deadline.as_mut().poll(context));
        Poll::Ready(Err(unread_error()))
    }
}

fn unread_error() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the peer does not read")
}

impl AsyncRead for CountedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, unread_timeout, connection, .. } = &mut *self;
        if unread_timeout.poll_stalled(context, connection.transfers()).is_ready() {
            return Poll::Ready(Err(unread_error()));
        }
        Pin::new(stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for CountedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(context, |stream, context| stream.poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, connection, lingering_close: linger, .. } = &mut *self;
        // A second shutdown fails with `ENOTCONN` once the client has closed its side too.
        if linger.is_none() {
            ready!(Pin::new(&mut *stream).poll_shutdown(context))?;
        }
        if !connection.lingers() {
            return Poll::Ready(Ok(()));
        }
        linger.get_or_insert_with(LingeringClose::new).poll(stream, context).map(Ok)
    }
}
