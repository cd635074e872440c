//! JSON-RPC messages in a byte stream, independent of chunk boundaries.

use algonius_actors::model::program::stdio_protocol::Framing;
use algonius_protocols::{
    LineItem, UnreadableText, has_too_many_values, is_rpc_message, may_be_rpc_message,
    read_json_line,
};
use serde_json::Value;

use super::UnreadableMessageText;

/// Greatest size of a header in bytes.
const MAX_HEADER_BYTES: usize = 8 * 1024;

/// Item of the stream.
#[derive(Debug, PartialEq)]
pub(super) enum Frame {
    /// A JSON message.
    Message(Value),
    /// Bytes that are not a message.
    NonMessage,
    /// Bytes that may have been a message.
    Unreadable(UnreadableMessageText),
    /// Bytes after which no message boundary can be found.
    Desynchronized,
}

/// Decoder that reads messages from bytes.
pub(super) struct FrameDecoder {
    framing: Framing,
    /// Greatest size of a message in bytes; a longer message is skipped.
    max_message_bytes: usize,
    bytes: Vec<u8>,
    /// Number of bytes at the start that contain no line end.
    searched_bytes: usize,
    /// Remainder of a skipped message.
    pending_skip: Skip,
}

/// Bytes to skip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Skip {
    Nothing,
    /// All bytes up to the end of the line.
    Line,
    /// This number of bytes.
    Bytes(u64),
    Everything,
}

impl FrameDecoder {
    pub(super) const fn new(framing: Framing, max_message_bytes: usize) -> Self {
        Self {
            framing,
            max_message_bytes,
            bytes: Vec::new(),
            searched_bytes: 0,
            pending_skip: Skip::Nothing,
        }
    }

    /// Takes the next bytes, and returns the frames that are now complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Frame> {
        let rest = self.skip(bytes);
        self.bytes.extend_from_slice(rest);
        let mut frames = Vec::new();
        while let Some(next_frames) = self.next() {
            frames.extend(next_frames);
        }
        frames
    }

    /// Returns the frames of a last message without its end. Nothing follows.
    pub(super) fn finish(&mut self) -> Vec<Frame> {
        let bytes = std::mem::take(&mut self.bytes);
        match self.framing {
            Framing::Lines => parse_frames(&bytes),
            Framing::ContentLength if bytes.trim_ascii().is_empty() => Vec::new(),
            Framing::ContentLength => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                vec![Frame::Unreadable(UnreadableMessageText {
                    reason: "has no end".to_owned(),
                    text,
                })]
            }
        }
    }

    /// Returns the bytes that are not skipped.
    fn skip<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let count = match self.pending_skip {
            Skip::Nothing => 0,
            Skip::Everything => bytes.len(),
            Skip::Line => match bytes.iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    self.pending_skip = Skip::Nothing;
                    end + 1
                }
                None => bytes.len(),
            },
            Skip::Bytes(left) => {
                let count = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                let left = left - count as u64;
                self.pending_skip = if left == 0 { Skip::Nothing } else { Skip::Bytes(left) };
                count
            }
        };
        bytes.get(count..).unwrap_or_default()
    }

    /// Returns the frames of the next complete line or body; an empty line has none.
    fn next(&mut self) -> Option<Vec<Frame>> {
        match self.framing {
            Framing::Lines => self.parse_next_line(),
            Framing::ContentLength => self.parse_next_body(),
        }
    }

    fn parse_next_line(&mut self) -> Option<Vec<Frame>> {
        let unsearched = self.bytes.get(self.searched_bytes..).unwrap_or_default();
        let line_end = unsearched.iter().position(|byte| *byte == b'\n');
        let Some(end) = line_end.map(|end| self.searched_bytes + end) else {
            self.searched_bytes = self.bytes.len();
            if self.bytes.len() <= self.max_message_bytes {
                return None;
            }
            // Its end may never come, so the line is not kept until then.
            (self.bytes, self.searched_bytes, self.pending_skip) = (Vec::new(), 0, Skip::Line);
            return Some(vec![self.too_long_frame()]);
        };
        self.searched_bytes = 0;
        let line: Vec<u8> = self.bytes.drain(..=end).collect();
        if end > self.max_message_bytes {
            return Some(vec![self.too_long_frame()]);
        }
        Some(parse_frames(&line))
    }

    fn parse_next_body(&mut self) -> Option<Vec<Frame>> {
        let Some((header_end, body_start)) = header_bounds(&self.bytes) else {
            return (self.bytes.len() > MAX_HEADER_BYTES).then(|| vec![self.desynchronize()]);
        };
        let Some(length) = self.bytes.get(..header_end).and_then(content_length) else {
            return Some(vec![self.desynchronize()]);
        };
        if length > self.max_message_bytes as u64 {
            let rest = self.bytes.split_off(body_start);
            self.pending_skip = Skip::Bytes(length);
            self.bytes = self.skip(&rest).to_vec();
            return Some(vec![self.too_long_frame()]);
        }
        let end = body_start + usize::try_from(length).unwrap_or(usize::MAX);
        let frames = parse_frames(self.bytes.get(body_start..end)?);
        self.bytes.drain(..end);
        Some(frames)
    }

    fn too_long_frame(&self) -> Frame {
        let reason = format!("is longer than {} bytes", self.max_message_bytes);
        Frame::Unreadable(UnreadableMessageText { reason, text: String::new() })
    }

    fn desynchronize(&mut self) -> Frame {
        // Without a length the start of the next message cannot be found.
        (self.bytes, self.pending_skip) = (Vec::new(), Skip::Everything);
        Frame::Desynchronized
    }
}

/// Encodes a message with its framing.
pub(super) fn encode(framing: Framing, message: &Value) -> Vec<u8> {
    let text = message.to_string();
    match framing {
        Framing::Lines => format!("{text}\n"),
        Framing::ContentLength => format!("Content-Length: {}\r\n\r\n{text}", text.len()),
    }
    .into_bytes()
}

/// Returns the frames of a line or a body. A batch is one frame.
fn parse_frames(bytes: &[u8]) -> Vec<Frame> {
    if !has_too_many_values(bytes)
        && let Ok(message) = serde_json::from_slice(bytes)
    {
        return vec![Frame::Message(message)];
    }
    let frames = read_json_line(bytes).into_iter().map(|item| match item {
        LineItem::Object(message) => Frame::Message(message),
        LineItem::UnreadableText(unreadable)
            if unreadable.may_be_message(is_rpc_message, may_be_rpc_message) =>
        {
            let UnreadableText { reason, text } = unreadable;
            Frame::Unreadable(UnreadableMessageText { reason: reason.to_owned(), text })
        }
        LineItem::UnreadableText(_) => Frame::NonMessage,
    });
    frames.collect()
}

/// Returns the end of the header and the start of the body.
fn header_bounds(bytes: &[u8]) -> Option<(usize, usize)> {
    let search_range = bytes.get(..bytes.len().min(MAX_HEADER_BYTES + 4)).unwrap_or_default();
    let find = |end: &[u8]| {
        search_range
            .windows(end.len())
            .position(|found| found == end)
            .map(|at| (at, at + end.len()))
    };
    [find(b"\r\n\r\n"), find(b"\n\n")].into_iter().flatten().min()
}

/// Returns the length that the header gives, if it gives exactly one.
fn content_length(header: &[u8]) -> Option<u64> {
    let header = str::from_utf8(header).ok()?;
    let mut lengths = header.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-length").then(|| value.trim())
    });
    let length = lengths.next()?;
    // `parse` would accept a leading `+`.
    let is_plain = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    (is_plain && lengths.next().is_none()).then(|| length.parse().ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const MAX_MESSAGE_BYTES: usize = 1 << 20;

    fn decode_all(framing: Framing, bytes: &[u8], mut size: impl FnMut() -> usize) -> Vec<Frame> {
        let mut decoder = FrameDecoder::new(framing, MAX_MESSAGE_BYTES);
        let (mut found, mut rest) = (Vec::new(), bytes);
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at(size().clamp(1, rest.len()));
            found.extend(decoder.push(piece));
            rest = tail;
        }
        found
    }

    #[test]
    fn a_content_length_is_found_among_other_headers() {
        let framing = Framing::ContentLength;
        for head in [
            "Content-Length: 2\r\n\r\n",
            "content-type: x\r\nCONTENT-LENGTH:2\r\n\r\n",
            "Content-Length: 2\n\n",
        ] {
            let found = decode_all(framing, format!("{head}{{}}").as_bytes(), || 1);
            assert_eq!(found, [Frame::Message(json!({}))], "{head}");
        }
    }

    #[test]
    fn an_invalid_header_ends_the_stream() {
        let long = "x".repeat(MAX_HEADER_BYTES + 1);
        for head in [
            "Length: 2\r\n\r\n",
            "Content-Length: -2\r\n\r\n",
            "Content-Length: 2\r\nContent-Length: 2\r\n\r\n",
            "Content-Length: 99999999999999999999\r\n\r\n",
            "hello\n\n",
            &long,
        ] {
            let bytes = format!("{head}{{}}Content-Length: 2\r\n\r\n{{}}");
            assert_eq!(
                decode_all(Framing::ContentLength, bytes.as_bytes(), || 7),
                [Frame::Desynchronized]
            );
        }
    }

    #[test]
    fn a_message_over_the_limit_is_skipped() {
        let long = vec![b' '; MAX_MESSAGE_BYTES + 1];
        let lines = [&long[..], b"\n{}\n"].concat();
        let head = format!("Content-Length: {}\r\n\r\n", long.len());
        let counted = [head.as_bytes(), &long, b"Content-Length: 2\r\n\r\n{}"].concat();
        for (framing, bytes) in [(Framing::Lines, lines), (Framing::ContentLength, counted)] {
            let found = decode_all(framing, &bytes, || 1 << 16);
            let reason = "is longer than 1048576 bytes".to_owned();
            let lost = Frame::Unreadable(UnreadableMessageText { reason, text: String::new() });
            assert_eq!(found, [lost, Frame::Message(json!({}))]);
        }
    }

    #[test]
    fn a_message_is_read_in_spite_of_its_surroundings() {
        let message = || Frame::Message(json!({"id": 1}));
        let lost = |text: &str| {
            Frame::Unreadable(UnreadableMessageText {
                reason: "is not JSON".to_owned(),
                text: text.to_owned(),
            })
        };
        for (line, frames) in [
            (&b"\x1b[?2004h{\"id\":1}\r"[..], vec![message()]),
            (b"\xef\xbb\xbf{\"id\":1}{\"id\":1}", vec![message(), message()]),
            (b"{\"id\":\"\xe9\"}", vec![Frame::Message(json!({"id": "\u{fffd}"}))]),
            (b"[{\"id\":1}]", vec![Frame::Message(json!([{"id": 1}]))]),
            (b"words", vec![Frame::NonMessage]),
            (b"INFO {\"level\":1}", vec![Frame::NonMessage]),
            (b"{\"id\":1,\"result\":", vec![lost("{\"id\":1,\"result\":")]),
            (b"words {\"id\":2,\"result\":1}", vec![lost("words {\"id\":2,\"result\":1}")]),
            (b"ERROR {\"error\":\"timeout\"}", vec![Frame::NonMessage]),
            (b"GET {\"method\":\"GET\",\"path\":\"/\"}", vec![Frame::NonMessage]),
            (b"\x1b[0m\r", vec![]),
        ] {
            let found = decode_all(Framing::Lines, &[line, b"\n"].concat(), || 3);
            assert_eq!(found, frames, "{}", line.escape_ascii());
        }
    }

    proptest! {
        /// A written message is read back wherever the bytes are cut, with junk between that the framing allows.
        #[test]
        fn framing_does_not_depend_on_the_chunks(
            texts in prop::collection::vec("\\PC{0,40}|[\\x00-\\x7f]{0,40}", 0..8),
            junk in any::<bool>(),
            size in 1_usize..60,
        ) {
            for framing in [Framing::Lines, Framing::ContentLength] {
                let (mut bytes, mut expected) = (Vec::new(), Vec::new());
                for text in &texts {
                    let message = json!({"text": text});
                    bytes.extend(encode(framing, &message));
                    expected.push(Frame::Message(message));
                    if junk {
                        let broken: &[u8] = match framing {
                            Framing::Lines => b"\r\n  \nwhat?\n",
                            Framing::ContentLength => b"Content-Length: 5\r\n\r\nwhat?",
                        };
                        bytes.extend(broken);
                        expected.push(Frame::NonMessage);
                    }
                }
                prop_assert_eq!(decode_all(framing, &bytes, || size), expected);
            }
        }

        /// No bytes stop the decoder, and its buffer stays within bounds.
        #[test]
        fn any_bytes_are_decoded_in_bounded_memory(bytes in prop::collection::vec(any::<u8>(), 0..4000), size in 1_usize..99) {
            for framing in [Framing::Lines, Framing::ContentLength] {
                let mut decoder = FrameDecoder::new(framing, MAX_MESSAGE_BYTES);
                for piece in bytes.chunks(size) {
                    decoder.push(piece);
                    prop_assert!(decoder.bytes.len() <= bytes.len());
                }
            }
        }
    }
}
