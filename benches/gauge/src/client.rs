//! Minimal client: HTTP/1.1 on one kept-alive connection, with bytes that were built before.
//!
//! The client shares the processors with the measured service, so it examines no more than necessary.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Connection to a server.
pub struct KeepAliveClient {
    stream: TcpStream,
    /// Bytes read of the present answer, and possibly of the next.
    read_buffer: Vec<u8>,
    body: Vec<u8>,
}

/// Framing of a body.
enum BodyFraming {
    ContentLength(usize),
    Chunked,
}

/// Status of an answer that did not arrive.
pub const NO_RESPONSE: u16 = 0;

/// Answer of the server.
pub struct BenchResponse<'a> {
    /// Status of the answer.
    pub status: u16,
    /// Body of the answer, without chunk framing.
    pub body: &'a [u8],
}

impl BenchResponse<'_> {
    /// Returns true if the status is 200 and the body contains this text.
    #[must_use]
    pub fn is_ok_and_contains(&self, expected: &str) -> bool {
        self.status == 200
            && std::str::from_utf8(self.body).is_ok_and(|text| text.contains(expected))
    }
}

impl KeepAliveClient {
    /// Opens a connection.
    ///
    /// # Panics
    /// Panics if no server listens.
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("a connection");
        stream.set_nodelay(true).expect("no delay");
        Self { stream, read_buffer: Vec::with_capacity(8192), body: Vec::new() }
    }

    /// Sends a request and reads its whole answer, whose status is [`NO_RESPONSE`] if the connection has ended.
    pub async fn send_request(&mut self, request: &[u8]) -> BenchResponse<'_> {
        self.send_streaming_request(request, |_| {}).await
    }

    /// Sends a request like [`Self::send_request`]; `on_piece` is called with each piece of the body as it arrives.
    pub async fn send_streaming_request(
        &mut self,
        request: &[u8],
        mut on_piece: impl FnMut(&[u8]),
    ) -> BenchResponse<'_> {
        match self.exchange(request, &mut on_piece).await {
            Ok(status) => BenchResponse { status, body: &self.body },
            Err(error) => {
                self.body = error.to_string().into_bytes();
                BenchResponse { status: NO_RESPONSE, body: &self.body }
            }
        }
    }

    async fn exchange(
        &mut self,
        request: &[u8],
        on_piece: &mut impl FnMut(&[u8]),
    ) -> io::Result<u16> {
        self.stream.write_all(request).await?;
        self.body.clear();
        let (status, framing) = self.read_head().await?;
        match framing {
            BodyFraming::ContentLength(bytes) => self.read_sized_body(bytes, on_piece).await?,
            BodyFraming::Chunked => while self.read_chunk(on_piece).await? {},
        }
        Ok(status)
    }

    async fn read_head(&mut self) -> io::Result<(u16, BodyFraming)> {
        let end = loop {
            if let Some(at) = self.read_buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            self.fill_buffer().await?;
        };
        let head =
            std::str::from_utf8(self.read_buffer.get(..end).unwrap_or_default()).expect("a head");
        let status = head.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("a status");
        let content_length = head.lines().find_map(content_length);
        let framing =
            content_length.map(|text| BodyFraming::ContentLength(text.parse().expect("a length")));
        self.read_buffer.drain(..end);
        Ok((status, framing.unwrap_or(BodyFraming::Chunked)))
    }

    async fn read_sized_body(
        &mut self,
        bytes: usize,
        on_piece: &mut impl FnMut(&[u8]),
    ) -> io::Result<()> {
        self.read_buffer.reserve(bytes.saturating_sub(self.read_buffer.len()));
        while self.read_buffer.len() < bytes {
            self.fill_buffer().await?;
        }
        on_piece(&self.read_buffer);
        std::mem::swap(&mut self.read_buffer, &mut self.body); // No bytes follow without a further request.
        self.read_buffer.clear();
        Ok(())
    }

    /// Reads one chunk; returns false for the last one.
    async fn read_chunk(&mut self, on_piece: &mut impl FnMut(&[u8])) -> io::Result<bool> {
        loop {
            if let Some(data_range) = first_chunk(&self.read_buffer) {
                let (is_last, end) = (data_range.is_empty(), data_range.end + 2);
                self.consume_chunk(data_range, end, on_piece);
                return Ok(!is_last);
            }
            self.fill_buffer().await?;
        }
    }

    fn consume_chunk(
        &mut self,
        data_range: Range<usize>,
        end: usize,
        on_piece: &mut impl FnMut(&[u8]),
    ) {
        let data = self.read_buffer.get(data_range).unwrap_or_default();
        on_piece(data);
        self.body.extend_from_slice(data);
        self.read_buffer.drain(..end);
    }

    async fn fill_buffer(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.read_buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// Returns the length in this line of a head, in any case of its name.
fn content_length(line: &str) -> Option<&str> {
    let (name, value) = line.split_once(':')?;
    name.eq_ignore_ascii_case("content-length").then_some(value.trim())
}

/// Returns the range of the first chunk's data, once all of it has arrived.
fn first_chunk(buffer: &[u8]) -> Option<Range<usize>> {
    let line_end = buffer.windows(2).position(|window| window == b"\r\n")?;
    let size = std::str::from_utf8(buffer.get(..line_end)?).ok()?;
    let size = usize::from_str_radix(size, 16).expect("the size of a chunk");
    let data = line_end + 2..line_end + 2 + size;
    (buffer.len() >= data.end + 2).then_some(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn send_and_read(answer: &'static [u8]) -> (u16, Vec<u8>, usize) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = KeepAliveClient::connect(listener.local_addr().unwrap()).await;
        let (mut stream, _) = listener.accept().await.unwrap();
        let reply = async {
            for piece in answer.chunks(7) {
                stream.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        let mut piece_count = 0;
        let exchange = async {
            let answer = client.send_streaming_request(b"?", |_| piece_count += 1).await;
            (answer.status, answer.body.to_vec())
        };
        let ((status, body), ()) = tokio::join!(exchange, reply);
        assert!(client.read_buffer.is_empty());
        (status, body, piece_count)
    }

    #[tokio::test]
    async fn an_answer_with_a_length_is_read_to_its_end() {
        let answer =
            send_and_read(b"HTTP/1.1 401 No\r\ncontent-length: 11\r\na: b\r\n\r\nhello there")
                .await;
        assert_eq!(answer, (401, b"hello there".to_vec(), 1));
    }

    #[tokio::test]
    async fn the_content_length_header_is_case_insensitive() {
        let answer = send_and_read(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").await;
        assert_eq!(answer, (200, b"hello".to_vec(), 1));
    }

    #[tokio::test]
    async fn a_chunked_answer_is_read_chunk_by_chunk() {
        let answer =
            b"HTTP/1.1 200 OK\r\nx: y\r\n\r\n5\r\nhello\r\n11\r\n, and no more :-)\r\n0\r\n\r\n";
        assert_eq!(send_and_read(answer).await, (200, b"hello, and no more :-)".to_vec(), 3));
    }
}
