//! A lean client: HTTP/1.1 on one connection that is kept, with bytes that were made before.
//!
//! It shares the processors with what it measures, so it looks at no more than it must.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// One connection.
pub struct Client {
    stream: TcpStream,
    /// What was read of the present answer, and perhaps a little more.
    read: Vec<u8>,
    body: Vec<u8>,
}

/// How the end of a body is known.
enum Length {
    Of(usize),
    Chunked,
}

/// The status of an answer that did not come.
pub const ENDED: u16 = 0;

/// An answer.
pub struct Answer<'a> {
    /// Its status.
    pub status: u16,
    /// Its body, out of its chunks.
    pub body: &'a [u8],
}

impl Answer<'_> {
    /// Whether it is a good one, and holds this.
    #[must_use]
    pub fn holds(&self, wanted: &str) -> bool {
        self.status == 200 && std::str::from_utf8(self.body).is_ok_and(|text| text.contains(wanted))
    }
}

impl Client {
    /// Connects.
    ///
    /// # Panics
    /// Where nobody listens.
    pub async fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("a connection");
        stream.set_nodelay(true).expect("no delay");
        Self { stream, read: Vec::with_capacity(8192), body: Vec::new() }
    }

    /// Sends a request and reads its whole answer, which is [`ENDED`] where the connection is.
    pub async fn ask(&mut self, request: &[u8]) -> Answer<'_> {
        self.follow(request, |_| {}).await
    }

    /// The same; `seen` is told of each piece of the body when it comes.
    pub async fn follow(&mut self, request: &[u8], mut seen: impl FnMut(&[u8])) -> Answer<'_> {
        match self.answered(request, &mut seen).await {
            Ok(status) => Answer { status, body: &self.body },
            Err(error) => {
                self.body = error.to_string().into_bytes();
                Answer { status: ENDED, body: &self.body }
            }
        }
    }

    async fn answered(&mut self, request: &[u8], seen: &mut impl FnMut(&[u8])) -> io::Result<u16> {
        self.stream.write_all(request).await?;
        self.body.clear();
        let (status, length) = self.head().await?;
        match length {
            Length::Of(bytes) => self.whole(bytes, seen).await?,
            Length::Chunked => while self.chunk(seen).await? {},
        }
        Ok(status)
    }

    async fn head(&mut self) -> io::Result<(u16, Length)> {
        let end = loop {
            if let Some(at) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            self.more().await?;
        };
        let head = std::str::from_utf8(self.read.get(..end).unwrap_or_default()).expect("a head");
        let status = head.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("a status");
        let length = head.lines().find_map(length);
        let length = length.map(|text| Length::Of(text.parse().expect("a length")));
        self.read.drain(..end);
        Ok((status, length.unwrap_or(Length::Chunked)))
    }

    async fn whole(&mut self, bytes: usize, seen: &mut impl FnMut(&[u8])) -> io::Result<()> {
        self.read.reserve(bytes.saturating_sub(self.read.len()));
        while self.read.len() < bytes {
            self.more().await?;
        }
        seen(&self.read);
        std::mem::swap(&mut self.read, &mut self.body); // Nothing follows that was not asked for.
        self.read.clear();
        Ok(())
    }

    /// One chunk; whether it was not the last.
    async fn chunk(&mut self, seen: &mut impl FnMut(&[u8])) -> io::Result<bool> {
        loop {
            if let Some(data) = chunk(&self.read) {
                let (is_last, end) = (data.is_empty(), data.end + 2);
                self.take(data, end, seen);
                return Ok(!is_last);
            }
            self.more().await?;
        }
    }

    fn take(&mut self, data: Range<usize>, end: usize, seen: &mut impl FnMut(&[u8])) {
        let data = self.read.get(data).unwrap_or_default();
        seen(data);
        self.body.extend_from_slice(data);
        self.read.drain(..end);
    }

    async fn more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.read).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// The length that this line of a head tells, however its name is written.
fn length(line: &str) -> Option<&str> {
    let (name, value) = line.split_once(':')?;
    name.eq_ignore_ascii_case("content-length").then_some(value.trim())
}

/// Where the data of the first chunk is, once all of it is there.
fn chunk(read: &[u8]) -> Option<Range<usize>> {
    let line = read.windows(2).position(|two| two == b"\r\n")?;
    let size = std::str::from_utf8(read.get(..line)?).ok()?;
    let size = usize::from_str_radix(size, 16).expect("the size of a chunk");
    let data = line + 2..line + 2 + size;
    (read.len() >= data.end + 2).then_some(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn told(answer: &'static [u8]) -> (u16, Vec<u8>, usize) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = Client::to(listener.local_addr().unwrap()).await;
        let (mut stream, _) = listener.accept().await.unwrap();
        let says = async {
            for piece in answer.chunks(7) {
                stream.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        let mut pieces = 0;
        let asks = async {
            let answer = client.follow(b"?", |_| pieces += 1).await;
            (answer.status, answer.body.to_vec())
        };
        let ((status, body), ()) = tokio::join!(asks, says);
        assert!(client.read.is_empty());
        (status, body, pieces)
    }

    #[tokio::test]
    async fn an_answer_with_a_length_is_read_to_its_end() {
        let answer =
            told(b"HTTP/1.1 401 No\r\ncontent-length: 11\r\na: b\r\n\r\nhello there").await;
        assert_eq!(answer, (401, b"hello there".to_vec(), 1));
    }

    #[tokio::test]
    async fn the_name_of_the_length_may_have_capitals() {
        let answer = told(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").await;
        assert_eq!(answer, (200, b"hello".to_vec(), 1));
    }

    #[tokio::test]
    async fn an_answer_in_chunks_is_read_chunk_by_chunk() {
        let answer =
            b"HTTP/1.1 200 OK\r\nx: y\r\n\r\n5\r\nhello\r\n11\r\n, and no more :-)\r\n0\r\n\r\n";
        assert_eq!(told(answer).await, (200, b"hello, and no more :-)".to_vec(), 3));
    }
}
