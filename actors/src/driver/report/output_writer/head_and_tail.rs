//! Head and tail of a text beyond the limit of its channel.

use std::mem;

use crate::decide::output::truncation::{
    HeadAndTailLimits, TailBuffer, truncate_to_tail, truncation_marker,
};
use crate::driver::report::AttemptContext;

/// Splitter of a raw text into its head, which is redacted as it arrives, and the bytes after it.
pub(super) struct HeadTailSplitter {
    /// Limits of head and tail.
    pub(super) limits: HeadAndTailLimits,
    /// Number of raw bytes in the head.
    head_bytes: usize,
    /// Raw bytes after the head.
    pub(super) tail_buffer: TailBuffer,
}

impl HeadTailSplitter {
    /// Creates the splitter of an empty text of an attempt.
    pub(super) fn new(context: &AttemptContext) -> Self {
        let limits = HeadAndTailLimits::from_total(context.output_settings.max_channel_bytes);
        // Redaction of the tail needs text before it: a secret whose start was cut would be shown otherwise.
        let context_bytes = context.redactor.required_context_bytes();
        Self { limits, head_bytes: 0, tail_buffer: TailBuffer::new(limits.tail + context_bytes) }
    }

    /// Adds bytes. Returns those that belong to the head.
    pub(super) fn split_off_head<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let capacity = (self.limits.head - self.head_bytes).min(bytes.len());
        let (head, rest) = bytes.split_at_checked(capacity).unwrap_or((bytes, &[]));
        self.head_bytes += head.len();
        self.tail_buffer.push(rest);
        head
    }

    /// Ends the text. Returns its length, the number of lost bytes, and the last bytes after the head.
    pub(super) fn end(&mut self) -> (u64, u64, Vec<u8>) {
        let tail_buffer = mem::replace(&mut self.tail_buffer, TailBuffer::new(0));
        let total_bytes = self.head_bytes as u64 + tail_buffer.total_bytes();
        let (lost_bytes, bytes) = tail_buffer.into_parts();
        (total_bytes, lost_bytes, bytes)
    }
}

/// Redacted head and tail of a text, and the number of missing bytes between them.
pub(super) struct TruncatedText {
    pub(super) head: String,
    pub(super) tail: String,
    pub(super) missing_bytes: u64,
}

impl TruncatedText {
    /// Splits a whole text into a head of at most `max_head_bytes` bytes and a tail of at most `max_tail_bytes` bytes.
    pub(super) fn split(mut text: String, max_head_bytes: u64, max_tail_bytes: usize) -> Self {
        let head_bytes = usize::try_from(max_head_bytes).unwrap_or(usize::MAX).min(text.len());
        let mut tail = text.split_off(text.floor_char_boundary(head_bytes));
        let missing_bytes = truncate_to_tail(&mut tail, max_tail_bytes);
        Self { head: text, tail, missing_bytes }
    }

    /// Appends head and tail, with a marker between them if bytes are missing.
    pub(super) fn append_to(&self, text: &mut String) {
        text.push_str(&self.head);
        if self.missing_bytes > 0 {
            text.push_str(&truncation_marker(self.missing_bytes));
        }
        text.push_str(&self.tail);
    }
}
