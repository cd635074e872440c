//! JSON document as a response body. A long text in the document is escaped during the transfer, so that memory
//! holds it only once.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use serde_json::Value;

/// Initial buffer size for a document, in bytes; most documents fit.
const INITIAL_BUFFER_BYTES: usize = 4 << 10;

/// Number of bytes of a text that are escaped at once. A text with more bytes is long.
const ESCAPE_CHUNK_BYTES: usize = 64 * 1024;

/// Number of bytes that are counted together; the count must fit into a byte.
const COUNT_CHUNK_BYTES: usize = 192;

/// Number of bytes that are searched together for a byte that needs an escape.
const WORD_BYTES: usize = 8;

/// Creates the body of a document. Its length is known before the transfer.
pub fn document_body(document: Value) -> Body {
    let mut writer = DocumentWriter {
        current_part: Vec::with_capacity(INITIAL_BUFFER_BYTES),
        ..DocumentWriter::default()
    };
    writer.write_value(document);
    writer.finish_part();
    match writer.finished_parts.pop_back() {
        // Nearly all documents are one part. A plain body is sent in one write, together with the head.
        Some(DocumentPart::FinalBytes(bytes)) if writer.finished_parts.is_empty() => {
            Body::from(bytes)
        }
        last_part => {
            writer.finished_parts.extend(last_part);
            let remaining_bytes =
                writer.finished_parts.iter().map(DocumentPart::length_in_body).sum();
            Body::new(DocumentStream {
                parts: writer.finished_parts,
                sent_part_bytes: 0,
                remaining_bytes,
            })
        }
    }
}

/// Part of a document.
#[derive(Debug)]
enum DocumentPart {
    /// Bytes in their final form.
    FinalBytes(Vec<u8>),
    /// Content of a long text, not yet escaped.
    UnescapedText(String),
}

impl DocumentPart {
    /// Returns the number of bytes of the part in the body.
    fn length_in_body(&self) -> u64 {
        match self {
            Self::FinalBytes(bytes) => bytes.len() as u64,
            Self::UnescapedText(text) => {
                text.as_bytes().chunks(ESCAPE_CHUNK_BYTES).map(escaped_length).sum::<usize>() as u64
            }
        }
    }
}

/// Document in parts.
#[derive(Default)]
struct DocumentWriter {
    finished_parts: VecDeque<DocumentPart>,
    current_part: Vec<u8>,
}

impl DocumentWriter {
    fn write_value(&mut self, value: Value) {
        match value {
            Value::String(text) if text.len() > ESCAPE_CHUNK_BYTES => {
                // The quotes belong to the parts around the text, because an escaped piece has none.
                self.current_part.push(b'"');
                self.finish_part();
                self.finished_parts.push_back(DocumentPart::UnescapedText(text));
                self.current_part.push(b'"');
            }
            Value::Array(items) => {
                self.write_list(b"[]", items, Self::write_value);
            }
            Value::Object(fields) => {
                self.write_list(b"{}", fields, |writer, (name, value)| {
                    writer.write_text(&name);
                    writer.current_part.push(b':');
                    writer.write_value(value);
                });
            }
            Value::String(text) => self.write_text(&text),
            // Every value here is valid JSON, and a write to memory does not fail.
            other => _ = serde_json::to_writer(&mut self.current_part, &other),
        }
    }

    fn write_list<T>(
        &mut self,
        [opening, closing]: &[u8; 2],
        items: impl IntoIterator<Item = T>,
        write: impl Fn(&mut Self, T),
    ) {
        self.current_part.push(*opening);
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                self.current_part.push(b',');
            }
            write(self, item);
        }
        self.current_part.push(*closing);
    }

    /// Writes a text that is not long.
    fn write_text(&mut self, text: &str) {
        self.current_part.reserve(text.len() + 2);
        self.current_part.push(b'"');
        escape(text.as_bytes(), &mut self.current_part);
        self.current_part.push(b'"');
    }

    fn finish_part(&mut self) {
        self.finished_parts
            .push_back(DocumentPart::FinalBytes(std::mem::take(&mut self.current_part)));
    }
}

/// Document in transfer.
struct DocumentStream {
    parts: VecDeque<DocumentPart>,
    /// Number of sent bytes of the first part, if that part is a text.
    sent_part_bytes: usize,
    /// Number of bytes that are not sent yet.
    remaining_bytes: u64,
}

impl DocumentStream {
    fn next(&mut self) -> Option<Vec<u8>> {
        let Some(DocumentPart::UnescapedText(text)) = self.parts.front() else {
            let Some(DocumentPart::FinalBytes(bytes)) = self.parts.pop_front() else { return None };
            return Some(bytes);
        };
        // Pieces are cut between bytes, not characters: an escape concerns single bytes only, and no byte of a longer
        // character needs one.
        let rest = text.as_bytes().get(self.sent_part_bytes..).unwrap_or_default();
        let piece = rest.get(..ESCAPE_CHUNK_BYTES).unwrap_or(rest);
        // The exact size, so that the buffer neither grows nor holds more than the piece.
        let mut out = Vec::with_capacity(escaped_length(piece));
        escape(piece, &mut out);
        self.sent_part_bytes += piece.len();
        if piece.len() == rest.len() {
            self.parts.pop_front();
            self.sent_part_bytes = 0;
        }
        Some(out)
    }
}

impl HttpBody for DocumentStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let stream = self.get_mut();
        let next = stream.next();
        stream.remaining_bytes -= next.as_ref().map_or(0, |next| next.len() as u64);
        Poll::Ready(next.map(|next| Ok(Frame::data(next.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.remaining_bytes == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining_bytes)
    }
}

/// Returns the number of bytes of a piece of a text in JSON.
fn escaped_length(piece: &[u8]) -> usize {
    let added = piece.chunks(COUNT_CHUNK_BYTES).map(|chunk| {
        usize::from(count_bytes(chunk, needs_escape))
            + 4 * usize::from(count_bytes(chunk, has_numeric_escape))
    });
    piece.len() + added.sum::<usize>()
}

/// Returns how many of a few bytes satisfy the condition. The form of the loop lets the compiler vectorize it.
fn count_bytes(bytes: &[u8], matches: impl Fn(u8) -> bool) -> u8 {
    bytes.iter().fold(0_u8, |count, byte| count.wrapping_add(u8::from(matches(*byte))))
}

/// True if JSON escapes the byte with a backslash.
const fn needs_escape(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

/// True if the escape of the byte is its number instead of a letter.
const fn has_numeric_escape(byte: u8) -> bool {
    let has_letter = (byte == 8) | (byte == 9) | (byte == 10) | (byte == 12) | (byte == 13);
    (byte < 0x20) & !has_letter
}

/// Writes a piece of a text with JSON escapes.
fn escape(mut piece: &[u8], out: &mut Vec<u8>) {
    while let Some((unescaped, [first, rest @ ..])) =
        piece.split_at_checked(unescaped_prefix_length(piece))
    {
        out.extend_from_slice(unescaped);
        match *first {
            byte @ (b'"' | b'\\') => out.extend([b'\\', byte]),
            8 => out.extend(b"\\b"),
            b'\t' => out.extend(b"\\t"),
            b'\n' => out.extend(b"\\n"),
            12 => out.extend(b"\\f"),
            b'\r' => out.extend(b"\\r"),
            byte => out.extend(format!("\\u{byte:04x}").bytes()),
        }
        piece = rest;
    }
    out.extend_from_slice(piece);
}

/// Returns the number of leading bytes that need no escape.
fn unescaped_prefix_length(piece: &[u8]) -> usize {
    let (words, _) = piece.as_chunks::<WORD_BYTES>();
    let first_marked = words.iter().position(|word| escape_marks(u64::from_le_bytes(*word)) != 0);
    let Some(word_index) = first_marked else {
        let searched_bytes = words.len() * WORD_BYTES;
        let rest = piece.get(searched_bytes..).unwrap_or_default();
        return searched_bytes
            + rest.iter().position(|byte| needs_escape(*byte)).unwrap_or(rest.len());
    };
    // The words are read in little endian on every machine, so the lowest mark belongs to the first byte.
    let marks = words.get(word_index).map_or(0, |word| escape_marks(u64::from_le_bytes(*word)));
    word_index * WORD_BYTES + marks.trailing_zeros() as usize / 8
}

/// Marks the bytes of a word that need an escape; the lowest mark is exact, and there is no mark if no byte needs an
/// escape.
const fn escape_marks(word: u64) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; WORD_BYTES]);
    const HIGH: u64 = ONES << 7;
    let quote = word ^ (ONES * b'"' as u64);
    let slash = word ^ (ONES * b'\\' as u64);
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let special = quote.wrapping_sub(ONES) & !quote | slash.wrapping_sub(ONES) & !slash;
    (control | special) & HIGH
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Returns the sent bytes and the announced length.
    fn streamed_bytes_and_length(document: &Value) -> (Vec<u8>, Option<u64>) {
        let body = document_body(document.clone());
        let length = body.size_hint().exact();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let sent = runtime.block_on(body.collect()).expect("a body");
        (sent.to_bytes().to_vec(), length)
    }

    fn assert_streamed(document: &Value) {
        let expected = serde_json::to_vec(document).expect("JSON");
        let length = expected.len() as u64;
        assert!(streamed_bytes_and_length(document) == (expected, Some(length)));
    }

    #[test]
    fn long_texts_are_streamed_as_valid_json() {
        let all_characters: String = (0..0x250).filter_map(char::from_u32).collect();
        for length in [
            ESCAPE_CHUNK_BYTES - 1,
            ESCAPE_CHUNK_BYTES,
            ESCAPE_CHUNK_BYTES + 1,
            3 * ESCAPE_CHUNK_BYTES,
            3 * ESCAPE_CHUNK_BYTES + 7,
        ] {
            let text: String = all_characters.chars().cycle().take(length).collect();
            assert_streamed(&json!(text));
            assert_streamed(&json!([text, {"a": text, "b\n": [1, null, true, "short"]}, text]));
        }
        assert_streamed(
            &json!({"plain": "x".repeat(2 * ESCAPE_CHUNK_BYTES), "lines": "\n".repeat(2 * ESCAPE_CHUNK_BYTES)}),
        );
    }

    proptest! {
        #[test]
        fn bytes_are_escaped_as_by_serde_json(text in any::<String>(), at in 0_usize..9) {
            let text = "x".repeat(at) + &text;
            let mut out = vec![b'"'];
            escape(text.as_bytes(), &mut out);
            prop_assert_eq!(out.len() - 1, escaped_length(text.as_bytes()));
            out.push(b'"');
            prop_assert_eq!(out, serde_json::to_vec(&text).expect("JSON"));
        }
    }
}
