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
    /// Until when it must be known which HTTP is spoken; `None` once it is.
    by: Option<Pin<Box<Sleep>>>,
    /// What was heard until then, and is still to be read.
    heard: Heard,
}

/// The first bytes, which may begin either HTTP.
#[derive(Default)]
struct Heard {
    bytes: [u8; PREFACE.len()],
    /// How many there are.
    count: usize,
}

/// Which HTTP is spoken, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spoken {
    Unknown,
    One,
    Two,
}

impl Opening {
    /// Ends when which HTTP is spoken is not known within `time`.
    #[must_use]
    pub fn new(stream: Box<dyn Stream>, time: Duration) -> Self {
        Self { stream, by: Some(Box::pin(sleep(time))), heard: Heard::default() }
    }

    /// Hears until it is known which HTTP is spoken.
    fn poll_spoken(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Spoken>> {
        loop {
            let mut buffer = ReadBuf::new(self.heard.room());
            let read = Pin::new(&mut self.stream).poll_read(context, &mut buffer);
            let more = buffer.filled().len();
            if read.is_pending() {
                return self.poll_late(context);
            }
            ready!(read)?;
            match self.heard.told_by(more) {
                Spoken::Unknown => {}
                spoken => return Poll::Ready(Ok(spoken)),
            }
        }
    }

    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Spoken>> {
        let Some(by) = &mut self.by else { return Poll::Pending };
        ready!(by.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "no request began")))
    }
}

impl Heard {
    fn room(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.count..).unwrap_or_default()
    }

    /// What so many further bytes tell. The end of all bytes is HTTP/1.
    fn told_by(&mut self, more: usize) -> Spoken {
        self.count += more;
        let bytes = self.bytes.get(..self.count).unwrap_or_default();
        if more == 0 || !PREFACE.starts_with(bytes) {
            Spoken::One
        } else if bytes.len() < PREFACE.len() {
            Spoken::Unknown
        } else {
            Spoken::Two
        }
    }

    /// Gives what there is, as far as there is room for it.
    fn give(&mut self, buffer: &mut ReadBuf<'_>) {
        let given = self.count.min(buffer.remaining());
        buffer.put_slice(self.bytes.get(..given).unwrap_or_default());
        self.bytes.copy_within(given..self.count, 0);
        self.count -= given;
    }
}

impl AsyncRead for Opening {
    /// Who serves asks by a short buffer which HTTP is spoken, takes nothing for HTTP/1, and later reads what
    /// it got then before all else, for which its buffer would be twice as long as long as the connection
    /// lives. So nothing is given, and the first bytes come together with those after them.
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.by.is_some() {
            let spoken = ready!(self.poll_spoken(context))?;
            self.by = None;
            if spoken == Spoken::One {
                return Poll::Ready(Ok(()));
            }
        }
        let before = buffer.filled().len();
        self.heard.give(buffer);
        let has_given = buffer.filled().len() > before;
        if has_given && buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Pending if has_given => Poll::Ready(Ok(())),
            read => read,
        }
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::timeout;

    use super::*;

    #[test]
    fn which_http_is_spoken_is_known_as_soon_as_it_can_be() {
        let told_after = |pieces: &[&[u8]]| {
            let mut heard = Heard::default();
            pieces.iter().position(|piece| {
                let more = piece.len().min(heard.room().len());
                heard.room()[..more].copy_from_slice(&piece[..more]);
                heard.told_by(more) != Spoken::Unknown
            })
        };
        assert_eq!(told_after(&[b"GET / HTTP/1.1\r\n"]), Some(0));
        assert_eq!(told_after(&[b"P", b"OST / HTTP/1.1"]), Some(1));
        assert_eq!(told_after(&[b"P", b"RI * HTTP/2.0\r\n\r\nSM\r\n\r", b"\n"]), Some(2));
        assert_eq!(told_after(&[b"PRI * HTTP/2.0\r\n", b"\r\nSM\r\n\r\nmore"]), Some(1));
        assert_eq!(told_after(&[b"PRI * HTTP/2.0\r\n", b""]), Some(1));
        assert_eq!(told_after(&[b"P", b"R", b"I"]), None);
    }

    /// What is read first with a short buffer, and then with a long one.
    async fn read(sent: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let (mut theirs, ours) = duplex(1 << 10);
        let mut opening = Opening::new(Box::new(ours), Duration::from_secs(9));
        theirs.write_all(sent).await.expect("room");
        let (mut short, mut long) = ([0; PREFACE.len()], vec![0; 1 << 10]);
        let first = opening.read(&mut short).await.expect("bytes");
        let then = timeout(Duration::from_secs(9), opening.read(&mut long));
        let then = then.await.expect("in time").expect("bytes");
        (short[..first].to_vec(), long[..then].to_vec())
    }

    #[tokio::test]
    async fn the_first_bytes_of_http_1_come_with_those_after_them() {
        let head = b"POST / HTTP/1.1\r\nhost: somewhere\r\n\r\nbody".to_vec();
        assert_eq!(read(&head).await, (Vec::new(), head));
        let short = b"GET / HTTP/1.0\r\n\r\n".to_vec(); // Nothing comes after it.
        assert_eq!(read(&short).await, (Vec::new(), short));
        let begun = [PREFACE, b"more"].concat();
        assert_eq!(read(&begun).await, (PREFACE.to_vec(), b"more".to_vec()));
    }

    #[tokio::test]
    async fn little_room_loses_nothing() {
        let (mut theirs, ours) = duplex(1 << 10);
        let mut opening = Opening::new(Box::new(ours), Duration::from_secs(9));
        theirs.write_all(b"GET / HTTP/1.0\r\n\r\n").await.expect("room");
        drop(theirs);
        let (mut all, mut room) = (Vec::<u8>::new(), [0; 5]);
        assert_eq!(opening.read(&mut room).await.expect("nothing"), 0);
        while let read @ 1.. = opening.read(&mut room).await.expect("bytes") {
            all.extend(&room[..read]);
        }
        assert_eq!(all, b"GET / HTTP/1.0\r\n\r\n");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_says_nothing_is_given_up() {
        for said in [&b""[..], b"PRI *"] {
            let (mut theirs, ours) = duplex(1 << 10);
            let mut opening = Opening::new(Box::new(ours), Duration::from_secs(9));
            theirs.write_all(said).await.expect("room");
            let error = opening.read(&mut [0; PREFACE.len()]).await.expect_err("an end");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        }
    }
}
