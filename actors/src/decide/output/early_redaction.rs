//! Redaction of a text that arrives in pieces, with an early release of the start of an unfinished line.
//!
//! The redactor judges whole lines, because the text before a word may decide whether the word is a secret.
//! The start of a line that is shown early therefore stays in the line. The redactor later receives the whole
//! line, and the stream returns only the part of the result that it did not show before. So an early release
//! never changes the redaction of the text after it.

use std::sync::Arc;

use algonius_redact::{Redactor, StreamRedactor};

/// Longest line, in bytes, that is shown early. The redactor itself releases a longer line in parts.
const MAX_EARLY_LINE_BYTES: usize = 8 * 1024;

/// Redactor of a text that arrives in pieces; it can show the start of an unfinished line.
pub struct EarlyReleaseRedactor {
    redactor: Arc<Redactor>,
    stream: StreamRedactor,
    /// Raw bytes of the unfinished line; `None` once the line is too long.
    unfinished_line: Option<Vec<u8>>,
    /// Part of that line that was shown early and that `stream` has not returned since.
    early_text: String,
}

impl EarlyReleaseRedactor {
    /// Creates the redactor of a new text.
    #[must_use]
    pub fn new(redactor: Arc<Redactor>) -> Self {
        let stream = StreamRedactor::new(Arc::clone(&redactor));
        Self { redactor, stream, unfinished_line: Some(Vec::new()), early_text: String::new() }
    }

    /// Receives bytes and returns the text that is safe to show now.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut out = String::new();
        self.push_to(bytes, &mut out);
        out
    }

    /// Appends the text that is safe to show now to `out`.
    pub fn push_to(&mut self, bytes: &[u8], out: &mut String) {
        self.buffer_line(bytes);
        if self.early_text.is_empty() {
            return self.stream.push_to(bytes, out);
        }
        let released = self.stream.push(bytes);
        out.push_str(self.strip_early_text(&released));
    }

    /// Shows the part of the unfinished line that is safe to show now, and returns the new text of it.
    pub fn release_line_start(&mut self) -> String {
        let line = self.unfinished_line.as_deref().unwrap_or_default();
        // If the stream holds back more than this line, the line may belong to a secret of several lines.
        if line.is_empty() || self.stream.held_bytes() != line.len() {
            return String::new();
        }
        let mut line_stream = StreamRedactor::new(Arc::clone(&self.redactor));
        if !line_stream.push(line).is_empty() {
            return String::new();
        }
        let safe_line = line_stream.release_safe_text();
        let new_text = safe_line.strip_prefix(&*self.early_text).unwrap_or_default().to_owned();
        self.early_text.push_str(&new_text);
        new_text
    }

    /// Returns the text that is safe to show although the source has paused.
    pub fn release_after_pause(&mut self) -> String {
        let released = self.stream.release_safe_text();
        self.strip_early_text(&released).to_owned()
    }

    /// Returns the rest. Afterwards the stream equals a new one.
    pub fn finish(&mut self) -> String {
        let released = self.stream.finish();
        let remainder = self.strip_early_text(&released).to_owned();
        (self.unfinished_line, self.early_text) = (Some(Vec::new()), String::new());
        remainder
    }

    /// Returns the number of redactions so far.
    #[must_use]
    pub const fn redaction_count(&self) -> u64 {
        self.stream.redaction_count()
    }

    /// Stores the unfinished line.
    fn buffer_line(&mut self, bytes: &[u8]) {
        let newline = bytes.iter().rposition(|byte| *byte == b'\n');
        let line_start = newline.map_or(0, |newline| newline + 1);
        let line_bytes = bytes.get(line_start..).unwrap_or_default();
        let line = if newline.is_some() { Some(Vec::new()) } else { self.unfinished_line.take() };
        self.unfinished_line = line
            .filter(|line| line.len() + line_bytes.len() <= MAX_EARLY_LINE_BYTES)
            .map(|mut line| {
                line.extend_from_slice(line_bytes);
                line
            });
    }

    /// Returns the part of a released text that was not shown early.
    fn strip_early_text<'g>(&mut self, released: &'g str) -> &'g str {
        let common_chars = self
            .early_text
            .chars()
            .zip(released.chars())
            .take_while(|(early_char, released_char)| early_char == released_char);
        let common_length = common_chars.map(|(early_char, _)| early_char.len_utf8()).sum();
        let new_text = released.get(common_length..).unwrap_or_default();
        if new_text.is_empty() {
            self.early_text.drain(..common_length);
        } else {
            self.early_text.clear();
        }
        new_text
    }
}
