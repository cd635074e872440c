//! Truncation of a long text: its head and its tail, with a marker for the missing bytes.

use std::collections::VecDeque;

/// Longest tail, in bytes; the tail of a smaller limit is a quarter of the limit.
const MAX_TAIL_BYTES: usize = 1 << 20;

/// Division of a limit into head and tail, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadAndTailLimits {
    /// Bytes of the head.
    pub head: usize,
    /// Bytes of the tail.
    pub tail: usize,
}

impl HeadAndTailLimits {
    /// Returns the division of a limit.
    #[must_use]
    pub fn from_total(limit: usize) -> Self {
        let tail = (limit / 4).min(MAX_TAIL_BYTES);
        Self { head: limit - tail, tail }
    }
}

/// Returns the marker between head and tail.
#[must_use]
pub fn truncation_marker(dropped: u64) -> String {
    format!("\n[... {dropped} bytes were dropped ...]\n")
}

/// Removes the text before the last `max_bytes` bytes. Returns the number of removed bytes.
pub fn truncate_to_tail(text: &mut String, max_bytes: usize) -> u64 {
    let start = text.ceil_char_boundary(text.len().saturating_sub(max_bytes));
    text.drain(..start);
    start as u64
}

/// Ring buffer for the last bytes of a text.
#[derive(Debug)]
pub struct TailBuffer {
    bytes: VecDeque<u8>,
    max_bytes: usize,
    dropped: u64,
}

impl TailBuffer {
    /// Creates a buffer for the last `max_bytes` bytes.
    #[must_use]
    pub const fn new(max_bytes: usize) -> Self {
        Self { bytes: VecDeque::new(), max_bytes, dropped: 0 }
    }

    /// Appends bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let (skipped, last) = bytes.split_at(bytes.len().saturating_sub(self.max_bytes));
        let excess = (self.bytes.len() + last.len()).saturating_sub(self.max_bytes);
        self.bytes.drain(..excess);
        self.dropped += (skipped.len() + excess) as u64;
        // A nearly full buffer would double its capacity by default and then use all of it.
        let capacity = self.bytes.capacity();
        let required = self.bytes.len() + last.len();
        if required > capacity {
            let new_capacity = required.max(capacity.saturating_mul(2)).min(self.max_bytes);
            self.bytes.reserve_exact(new_capacity - self.bytes.len());
        }
        self.bytes.extend(last);
    }

    /// Counts missing bytes: the bytes before them are no longer part of the tail.
    pub fn record_missing_bytes(&mut self, count: u64) {
        if count > 0 {
            self.dropped += count + self.bytes.len() as u64;
            self.bytes.clear();
        }
    }

    /// Returns true if no byte arrived.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.dropped == 0
    }

    /// Returns the number of all bytes that arrived.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.dropped + self.bytes.len() as u64
    }

    /// Returns the number of lost bytes and the remaining ones.
    #[must_use]
    pub fn into_parts(self) -> (u64, Vec<u8>) {
        (self.dropped, self.bytes.into())
    }
}

/// Head and tail of a raw text.
#[derive(Debug)]
pub struct HeadAndTailBuffer {
    limits: HeadAndTailLimits,
    head: Vec<u8>,
    tail: TailBuffer,
}

impl HeadAndTailBuffer {
    /// Creates an empty text with this limit in bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let limits = HeadAndTailLimits::from_total(limit);
        Self { limits, head: Vec::new(), tail: TailBuffer::new(limits.tail) }
    }

    /// Appends bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let head_bytes = self.limits.head.saturating_sub(self.head.len()).min(bytes.len());
        let (head, tail) = bytes.split_at_checked(head_bytes).unwrap_or((bytes, &[]));
        self.head.extend_from_slice(head);
        self.tail.push(tail);
    }

    /// Counts missing bytes.
    pub fn record_missing_bytes(&mut self, count: u64) {
        self.tail.record_missing_bytes(count);
    }

    /// Returns the number of stored bytes.
    #[must_use]
    pub fn stored_bytes(&self) -> usize {
        self.head.len() + self.tail.bytes.len()
    }

    /// Returns the number of missing bytes after the head.
    #[must_use]
    pub const fn missing_bytes(&self) -> u64 {
        self.tail.dropped
    }

    /// Returns the head, the number of missing bytes after it, and the bytes after those.
    #[must_use]
    pub fn into_parts(self) -> (Vec<u8>, u64, Vec<u8>) {
        let (dropped, tail) = self.tail.into_parts();
        (self.head, dropped, tail)
    }

    /// Returns the text; bytes that are not UTF-8 become U+FFFD.
    #[must_use]
    pub fn into_text(self) -> String {
        let (head, dropped, tail) = self.into_parts();
        join_head_and_tail(head, dropped, &tail)
    }
}

/// Joins head and tail, with the marker if bytes are missing between them. No character is split; bytes that are not
/// UTF-8 become U+FFFD.
#[must_use]
pub fn join_head_and_tail(mut head: Vec<u8>, missing: u64, mut tail: &[u8]) -> String {
    if missing > 0 {
        let continuation_bytes =
            tail.iter().take(3).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
        tail = tail.get(continuation_bytes..).unwrap_or_default();
        head.truncate(complete_characters_length(&head));
        head.extend_from_slice(truncation_marker(missing).as_bytes());
    }
    head.extend_from_slice(tail);
    String::from_utf8(head)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Returns the length without an incomplete character at the end.
fn complete_characters_length(bytes: &[u8]) -> usize {
    let last_bytes = bytes.get(bytes.len().saturating_sub(3)..).unwrap_or_default();
    let start_distance = (1..=last_bytes.len()).find(|distance| {
        let byte = last_bytes.get(last_bytes.len() - distance).copied().unwrap_or_default();
        !(0x80..0xc0).contains(&byte)
    });
    let Some(distance) = start_distance else { return bytes.len() };
    let first_byte = last_bytes.get(last_bytes.len() - distance).copied().unwrap_or_default();
    let length = match first_byte {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    if distance < length { bytes.len() - distance } else { bytes.len() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{HeadAndTailBuffer, HeadAndTailLimits, truncation_marker};

    fn truncate_text(text: &[u8], limit: usize, mut chunk_size: impl FnMut() -> usize) -> String {
        let mut buffer = HeadAndTailBuffer::new(limit);
        let mut remaining = text;
        while !remaining.is_empty() {
            let (piece, tail) = remaining.split_at(chunk_size().clamp(1, remaining.len()));
            buffer.push(piece);
            remaining = tail;
        }
        buffer.into_text()
    }

    #[test]
    fn an_output_limit_keeps_mostly_the_head() {
        assert_eq!(
            HeadAndTailLimits::from_total(10 << 20),
            HeadAndTailLimits { head: 9 << 20, tail: 1 << 20 }
        );
        assert_eq!(HeadAndTailLimits::from_total(1000), HeadAndTailLimits { head: 750, tail: 250 });
        assert_eq!(HeadAndTailLimits::from_total(1), HeadAndTailLimits { head: 1, tail: 0 });
    }

    #[test]
    fn truncated_text_states_the_dropped_bytes() {
        assert_eq!(truncate_text(b"0123456789", 10, || 1), "0123456789");
        let expected = "012345\n[... 2 bytes were dropped ...]\n89";
        assert_eq!(truncate_text(b"0123456789", 8, || 3), expected);
        let mut buffer = HeadAndTailBuffer::new(8);
        buffer.push(b"0123456");
        buffer.record_missing_bytes(1_000_000);
        buffer.push(b"789");
        assert_eq!(buffer.into_text(), "012345\n[... 1000002 bytes were dropped ...]\n89");
    }

    #[test]
    fn truncation_never_splits_a_character() {
        let text = "é".repeat(100);
        for limit in 8..40 {
            let shortened = truncate_text(text.as_bytes(), limit, || 7);
            assert!(!shortened.contains(char::REPLACEMENT_CHARACTER), "{limit}: {shortened}");
        }
    }

    proptest! {
        #[test]
        fn truncation_does_not_depend_on_the_chunks(length in 0_usize..3000, limit in 4_usize..400, size in 1_usize..500) {
            let text: String = ('a'..='z').cycle().take(length).collect();
            let HeadAndTailLimits { head, tail } = HeadAndTailLimits::from_total(limit);
            let expected = if length <= limit {
                text.clone()
            } else {
                let dropped = (length - limit) as u64;
                let (head, _) = text.split_at(head);
                let (_, tail) = text.split_at(length - tail);
                [head, &truncation_marker(dropped), tail].concat()
            };
            prop_assert_eq!(truncate_text(text.as_bytes(), limit, || size), expected);
        }
    }
}
