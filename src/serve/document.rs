//! A JSON document as a body. A long text in it is escaped while it is sent, so that it is there once.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use serde_json::Value;

/// Room that is made at once for a document, in bytes: most are no longer.
const USUAL: usize = 4 << 10;

/// Bytes of a text that are escaped at once. A longer one is long.
const PIECE: usize = 64 * 1024;

/// Bytes that are counted together, no more than a byte can count.
const FEW: usize = 192;

/// Bytes that are looked at together for one that must be escaped.
const WORD: usize = 8;

/// The body of a document. Its length is known before it is sent.
pub fn body(document: Value) -> Body {
    let mut sheets = Sheets { open: Vec::with_capacity(USUAL), ..Sheets::default() };
    sheets.write(document);
    sheets.end();
    match sheets.done.pop_back() {
        Some(Sheet::Written(only)) if sheets.done.is_empty() => Body::from(only),
        last => {
            sheets.done.extend(last);
            let left = sheets.done.iter().map(Sheet::length).sum();
            Body::new(Sending { sheets: sheets.done, at: 0, left })
        }
    }
}

/// A part of a document.
#[derive(Debug)]
enum Sheet {
    /// As it is sent.
    Written(Vec<u8>),
    /// The inside of a long text, as it is.
    Text(String),
}

impl Sheet {
    /// Bytes that are sent of it.
    fn length(&self) -> u64 {
        match self {
            Self::Written(bytes) => bytes.len() as u64,
            Self::Text(text) => text.as_bytes().chunks(PIECE).map(escaped).sum::<usize>() as u64,
        }
    }
}

/// A document in parts.
#[derive(Default)]
struct Sheets {
    done: VecDeque<Sheet>,
    open: Vec<u8>,
}

impl Sheets {
    fn write(&mut self, value: Value) {
        match value {
            Value::String(text) if text.len() > PIECE => {
                self.open.push(b'"');
                self.end();
                self.done.push_back(Sheet::Text(text));
                self.open.push(b'"');
            }
            Value::Array(items) => {
                self.list(b"[]", items, Self::write);
            }
            Value::Object(fields) => {
                self.list(b"{}", fields, |sheets, (name, value)| {
                    sheets.text(&name);
                    sheets.open.push(b':');
                    sheets.write(value);
                });
            }
            Value::String(text) => self.text(&text),
            // There is none that JSON cannot hold, and memory takes all that is written to it.
            other => _ = serde_json::to_writer(&mut self.open, &other),
        }
    }

    fn list<T>(
        &mut self,
        [opens, closes]: &[u8; 2],
        items: impl IntoIterator<Item = T>,
        write: impl Fn(&mut Self, T),
    ) {
        self.open.push(*opens);
        for (number, item) in items.into_iter().enumerate() {
            if number > 0 {
                self.open.push(b',');
            }
            write(self, item);
        }
        self.open.push(*closes);
    }

    /// A text that is not long.
    fn text(&mut self, text: &str) {
        self.open.reserve(text.len() + 2);
        self.open.push(b'"');
        escape(text.as_bytes(), &mut self.open);
        self.open.push(b'"');
    }

    fn end(&mut self) {
        self.done.push_back(Sheet::Written(std::mem::take(&mut self.open)));
    }
}

/// A document on its way.
struct Sending {
    sheets: VecDeque<Sheet>,
    /// How much of the first was sent, where it is a text.
    at: usize,
    /// Bytes to be sent.
    left: u64,
}

impl Sending {
    fn next(&mut self) -> Option<Vec<u8>> {
        let Some(Sheet::Text(text)) = self.sheets.front() else {
            let Some(Sheet::Written(bytes)) = self.sheets.pop_front() else { return None };
            return Some(bytes);
        };
        let rest = text.as_bytes().get(self.at..).unwrap_or_default();
        let piece = rest.get(..PIECE).unwrap_or(rest);
        let mut out = Vec::with_capacity(escaped(piece));
        escape(piece, &mut out);
        self.at += piece.len();
        if piece.len() == rest.len() {
            self.sheets.pop_front();
            self.at = 0;
        }
        Some(out)
    }
}

impl HttpBody for Sending {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let sending = self.get_mut();
        let next = sending.next();
        sending.left -= next.as_ref().map_or(0, |next| next.len() as u64);
        Poll::Ready(next.map(|next| Ok(Frame::data(next.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// How many bytes a piece of a text is in JSON.
fn escaped(piece: &[u8]) -> usize {
    let added = piece.chunks(FEW).map(|few| {
        usize::from(count(few, is_escaped)) + 4 * usize::from(count(few, has_no_letter))
    });
    piece.len() + added.sum::<usize>()
}

/// How many of a few bytes are so. Written so that many are compared at once.
fn count(few: &[u8], is_so: impl Fn(u8) -> bool) -> u8 {
    few.iter().fold(0_u8, |count, byte| count.wrapping_add(u8::from(is_so(*byte))))
}

/// Whether a byte of a text is written behind a backslash.
const fn is_escaped(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

/// Whether its number stands there.
const fn has_no_letter(byte: u8) -> bool {
    let has_letter = (byte == 8) | (byte == 9) | (byte == 10) | (byte == 12) | (byte == 13);
    (byte < 0x20) & !has_letter
}

/// Writes a piece of a text as JSON has it.
fn escape(mut piece: &[u8], out: &mut Vec<u8>) {
    while let Some((plain, [first, rest @ ..])) = piece.split_at_checked(plain(piece)) {
        out.extend_from_slice(plain);
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

/// How many of the first bytes are the same in JSON.
fn plain(piece: &[u8]) -> usize {
    let (words, _) = piece.as_chunks::<WORD>();
    let whole = words.iter().position(|word| marks(u64::from_le_bytes(*word)) != 0);
    let Some(word) = whole else {
        let done = words.len() * WORD;
        let rest = piece.get(done..).unwrap_or_default();
        return done + rest.iter().position(|byte| is_escaped(*byte)).unwrap_or(rest.len());
    };
    let marks = words.get(word).map_or(0, |found| marks(u64::from_le_bytes(*found)));
    word * WORD + marks.trailing_zeros() as usize / 8
}

/// Marks the bytes of a word that must be escaped; the lowest mark is right, and there is none where there
/// is no such byte.
const fn marks(word: u64) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; WORD]);
    const HIGH: u64 = ONES << 7;
    let quote = word ^ (ONES * b'"' as u64);
    let slash = word ^ (ONES * b'\\' as u64);
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let zero = quote.wrapping_sub(ONES) & !quote | slash.wrapping_sub(ONES) & !slash;
    (control | zero) & HIGH
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// What is sent, and how long it was said to be.
    fn sent(document: &Value) -> (Vec<u8>, Option<u64>) {
        let body = body(document.clone());
        let length = body.size_hint().exact();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let sent = runtime.block_on(body.collect()).expect("a body");
        (sent.to_bytes().to_vec(), length)
    }

    fn holds(document: &Value) {
        let wanted = serde_json::to_vec(document).expect("JSON");
        let length = wanted.len() as u64;
        assert!(sent(document) == (wanted, Some(length)));
    }

    #[test]
    fn long_texts_are_sent_as_json_has_them() {
        let every: String = (0..0x250).filter_map(char::from_u32).collect();
        for length in [PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 3 * PIECE + 7] {
            let text: String = every.chars().cycle().take(length).collect();
            holds(&json!(text));
            holds(&json!([text, {"a": text, "b\n": [1, null, true, "short"]}, text]));
        }
        holds(&json!({"plain": "x".repeat(2 * PIECE), "lines": "\n".repeat(2 * PIECE)}));
    }

    proptest! {
        #[test]
        fn each_byte_is_escaped_as_the_library_does(text in any::<String>(), at in 0_usize..9) {
            let text = "x".repeat(at) + &text;
            let mut out = vec![b'"'];
            escape(text.as_bytes(), &mut out);
            prop_assert_eq!(out.len() - 1, escaped(text.as_bytes()));
            out.push(b'"');
            prop_assert_eq!(out, serde_json::to_vec(&text).expect("JSON"));
        }
    }
}
