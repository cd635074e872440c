//! Connection that is closed if the client does not select a version of HTTP in time.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Start of every HTTP/2 connection. The version is detected with it, without a separate timer.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Byte stream in clear text, over any transport.
pub trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for S {}

/// Connection on which a request must start soon.
pub struct ProtocolSniffer {
    stream: Box<dyn ByteStream>,
    /// Deadline for the detection of the HTTP version; `None` after the detection.
    deadline: Option<Pin<Box<Sleep>>>,
    /// Bytes that were read for the detection and still have to be delivered.
    prefix: SniffedPrefix,
}

/// First bytes of a connection, which may start either version of HTTP.
#[derive(Default)]
struct SniffedPrefix {
    bytes: [u8; HTTP2_PREFACE.len()],
    /// Number of bytes.
    count: usize,
}

/// Version of HTTP, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HttpVersion {
    Unknown,
    Http1,
    Http2,
}

impl ProtocolSniffer {
    /// Creates a connection that fails if the HTTP version is not known within `time_limit`.
    #[must_use]
    pub fn new(stream: Box<dyn ByteStream>, time_limit: Duration) -> Self {
        Self {
            stream,
            deadline: Some(Box::pin(sleep(time_limit))),
            prefix: SniffedPrefix::default(),
        }
    }

    /// Reads until the HTTP version is known.
    fn poll_protocol(&mut self, context: &mut Context<'_>) -> Poll<io::Result<HttpVersion>> {
        loop {
            let mut buffer = ReadBuf::new(self.prefix.unfilled_buffer());
            let read_result = Pin::new(&mut self.stream).poll_read(context, &mut buffer);
            let read_bytes = buffer.filled().len();
            // The deadline is polled only while the client is silent: bytes that are there are always read first.
            if read_result.is_pending() {
                return self.poll_timeout(context);
            }
            ready!(read_result)?;
            match self.prefix.add_and_detect(read_bytes) {
                HttpVersion::Unknown => {}
                version => return Poll::Ready(Ok(version)),
            }
        }
    }

    fn poll_timeout(&mut self, context: &mut Context<'_>) -> Poll<io::Result<HttpVersion>> {
        let Some(deadline) = &mut self.deadline else { return Poll::Pending };
        ready!(deadline.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "no request began")))
    }
}

impl SniffedPrefix {
    fn unfilled_buffer(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.count..).unwrap_or_default()
    }

    /// Returns the version after this number of further bytes. The end of the stream counts as HTTP/1.
    fn add_and_detect(&mut self, added_bytes: usize) -> HttpVersion {
        self.count += added_bytes;
        let bytes = self.bytes.get(..self.count).unwrap_or_default();
        if added_bytes == 0 || !HTTP2_PREFACE.starts_with(bytes) {
            HttpVersion::Http1
        } else if bytes.len() < HTTP2_PREFACE.len() {
            HttpVersion::Unknown
        } else {
            HttpVersion::Http2
        }
    }

    /// Delivers the stored bytes, as far as the buffer has room.
    fn drain_into(&mut self, buffer: &mut ReadBuf<'_>) {
        let copied = self.count.min(buffer.remaining());
        buffer.put_slice(self.bytes.get(..copied).unwrap_or_default());
        self.bytes.copy_within(copied..self.count, 0);
        self.count -= copied;
    }
}

impl AsyncRead for ProtocolSniffer {
    /// The server detects the version with a short buffer. For HTTP/1 it would store the bytes it got and read them
    /// before all others, for which its buffer would be twice as long for the lifetime of the connection. Therefore
    /// the first read delivers nothing, and the first bytes are delivered together with the following ones.
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.deadline.is_some() {
            let version = ready!(self.poll_protocol(context))?;
            self.deadline = None;
            // `hyper-util` takes an empty read for HTTP/1 (ADR 66).
            if version == HttpVersion::Http1 {
                return Poll::Ready(Ok(()));
            }
        }
        let filled_before = buffer.filled().len();
        self.prefix.drain_into(buffer);
        let has_copied = buffer.filled().len() > filled_before;
        if has_copied && buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            // A short request may be complete already; nothing more may come before its answer.
            Poll::Pending if has_copied => Poll::Ready(Ok(())),
            read => read,
        }
    }
}

impl AsyncWrite for ProtocolSniffer {
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::timeout;

    use super::*;

    #[test]
    fn the_http_version_is_detected_at_the_earliest_byte() {
        let detected_after = |pieces: &[&[u8]]| {
            let mut prefix = SniffedPrefix::default();
            pieces.iter().position(|piece| {
                let added_bytes = piece.len().min(prefix.unfilled_buffer().len());
                prefix.unfilled_buffer()[..added_bytes].copy_from_slice(&piece[..added_bytes]);
                prefix.add_and_detect(added_bytes) != HttpVersion::Unknown
            })
        };
        assert_eq!(detected_after(&[b"GET / HTTP/1.1\r\n"]), Some(0));
        assert_eq!(detected_after(&[b"P", b"OST / HTTP/1.1"]), Some(1));
        assert_eq!(detected_after(&[b"P", b"RI * HTTP/2.0\r\n\r\nSM\r\n\r", b"\n"]), Some(2));
        assert_eq!(detected_after(&[b"PRI * HTTP/2.0\r\n", b"\r\nSM\r\n\r\nmore"]), Some(1));
        assert_eq!(detected_after(&[b"PRI * HTTP/2.0\r\n", b""]), Some(1));
        assert_eq!(detected_after(&[b"P", b"R", b"I"]), None);
    }

    /// Reads first with a short buffer, then with a long one.
    async fn read_short_then_long(sent: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let (mut client_stream, server_stream) = duplex(1 << 10);
        let mut sniffer = ProtocolSniffer::new(Box::new(server_stream), Duration::from_secs(9));
        client_stream.write_all(sent).await.expect("room");
        let (mut short, mut long) = ([0; HTTP2_PREFACE.len()], vec![0; 1 << 10]);
        let first_length = sniffer.read(&mut short).await.expect("bytes");
        let next_read = timeout(Duration::from_secs(9), sniffer.read(&mut long));
        let next_length = next_read.await.expect("in time").expect("bytes");
        (short[..first_length].to_vec(), long[..next_length].to_vec())
    }

    #[tokio::test]
    async fn detected_bytes_are_read_with_the_rest() {
        let head = b"POST / HTTP/1.1\r\nhost: somewhere\r\n\r\nbody".to_vec();
        assert_eq!(read_short_then_long(&head).await, (Vec::new(), head));
        let short = b"GET / HTTP/1.0\r\n\r\n".to_vec(); // Nothing comes after it.
        assert_eq!(read_short_then_long(&short).await, (Vec::new(), short));
        let http2_bytes = [HTTP2_PREFACE, b"more"].concat();
        assert_eq!(
            read_short_then_long(&http2_bytes).await,
            (HTTP2_PREFACE.to_vec(), b"more".to_vec())
        );
    }

    #[tokio::test]
    async fn a_small_read_buffer_loses_no_byte() {
        let (mut client_stream, server_stream) = duplex(1 << 10);
        let mut sniffer = ProtocolSniffer::new(Box::new(server_stream), Duration::from_secs(9));
        client_stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.expect("room");
        drop(client_stream);
        let (mut all, mut buffer) = (Vec::<u8>::new(), [0; 5]);
        assert_eq!(sniffer.read(&mut buffer).await.expect("nothing"), 0);
        while let read @ 1.. = sniffer.read(&mut buffer).await.expect("bytes") {
            all.extend(&buffer[..read]);
        }
        assert_eq!(all, b"GET / HTTP/1.0\r\n\r\n");
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_connection_times_out() {
        for sent in [&b""[..], b"PRI *"] {
            let (mut client_stream, server_stream) = duplex(1 << 10);
            let mut sniffer = ProtocolSniffer::new(Box::new(server_stream), Duration::from_secs(9));
            client_stream.write_all(sent).await.expect("room");
            let error = sniffer.read(&mut [0; HTTP2_PREFACE.len()]).await.expect_err("an end");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        }
    }
}
