//! Redaction of a text that arrives in pieces; holds back only text that could still become a secret.

mod safe_prefix;
pub(crate) mod segment;
pub(crate) mod text_end;
pub(crate) mod window;

use std::ops::{Deref, Range};
use std::sync::Arc;

use self::segment::TextEdits;
use self::window::{
    CONTEXT_BYTES, MAX_ENLARGEMENTS, OversizedSecret, Window, WindowAction, WindowEnd,
};
use super::Redactor;
use super::rules::pem::{
    DROPPED_BODY_PLACEHOLDER, PemBlock, find_pem_block, has_body, possible_footer_tail,
};

/// Size of the parts in which a longer piece is processed, so that little of it waits after a long line, in bytes.
const MAX_PIECE_BYTES: usize = 8 * 1024;

/// Stream that redacts a text that arrives in pieces.
///
/// The released pieces together equal the result of [`Redactor::redact`] for the whole text, however the text
/// is cut. A line of less than 12 KiB is held back as a whole. A longer line is released in windows, of which
/// the last 4 KiB are held back. Longer registered values make both larger.
pub struct StreamRedactor<R = Arc<Redactor>> {
    redactor: R,
    undecoded_bytes: Vec<u8>,
    pending_text: String,
    /// Start of the unfinished line. Whole lines before it wait for the text that decides about them, such as the
    /// header of a key.
    line_start: usize,
    /// Length of the start of `pending_text` that was already searched for line ends.
    searched_bytes: usize,
    long_line: Option<LongLine>,
    redaction_count: u64,
}

/// State of an unfinished line that is too long to be held back.
struct LongLine {
    /// Length of the text at the start of `pending_text` that is released already and serves as context.
    context_bytes: usize,
    /// A secret that is longer than a window.
    oversized_secret: Option<OversizedSecret>,
    /// Number of times that the window was enlarged.
    enlargements: u32,
}

impl LongLine {
    /// Creates the state of a line of which this much text is context and the rest is not inspected yet.
    const fn with_context(context_bytes: usize) -> Self {
        Self { context_bytes, oversized_secret: None, enlargements: 0 }
    }
}

impl<R: Deref<Target = Redactor>> StreamRedactor<R> {
    /// Creates the stream of a new text.
    #[must_use]
    pub const fn new(redactor: R) -> Self {
        Self {
            redactor,
            undecoded_bytes: Vec::new(),
            pending_text: String::new(),
            line_start: 0,
            searched_bytes: 0,
            long_line: None,
            redaction_count: 0,
        }
    }

    /// Receives bytes and returns the text that is safe to show now.
    ///
    /// Bytes that are not UTF-8 become U+FFFD; a character may be split between two calls.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut out = String::new();
        self.push_to(bytes, &mut out);
        out
    }

    /// Receives bytes and appends the text that is safe to show now to `out`.
    pub fn push_to(&mut self, bytes: &[u8], out: &mut String) {
        // A large piece would otherwise make `pending_text` as large, and the memory of a stream is bounded.
        for piece in bytes.chunks(MAX_PIECE_BYTES) {
            self.decode(piece);
            while self.advance(out) {}
        }
    }

    /// Returns the text that is safe to show although the source has paused in the middle of a line: words that neither
    /// are nor announce a secret, and that the source has finished writing.
    pub fn release_safe_text(&mut self) -> String {
        // Whole words only: a secret continues in the next piece only within a word, or after a word that announces
        // it.
        let safe_bytes = self.redactor.safe_prefix_bytes(&self.pending_text);
        let mut out = String::new();
        match &self.long_line {
            Some(line) if safe_bytes > line.context_bytes && line.oversized_secret.is_none() => {
                // The released end stays as context, because the rules inspect text before a secret.
                let next_context = safe_bytes.saturating_sub(CONTEXT_BYTES)..safe_bytes;
                self.release_text(next_context, None, &mut out);
            }
            // Nothing new is safe, or a secret that is longer than a window has not ended.
            Some(_) => {}
            None => {
                out.extend(self.pending_text.drain(..safe_bytes));
                self.line_start = self.line_start.saturating_sub(safe_bytes);
                self.searched_bytes = self.searched_bytes.saturating_sub(safe_bytes);
            }
        }
        out
    }

    /// Returns the rest. Afterwards the stream equals a new one.
    pub fn finish(&mut self) -> String {
        // The text has ended in the middle of a character.
        if !std::mem::take(&mut self.undecoded_bytes).is_empty() {
            self.pending_text.push(char::REPLACEMENT_CHARACTER);
        }
        let mut out = String::new();
        while self.advance(&mut out) {}
        if self.long_line.is_some() {
            self.process_window(self.pending_text.len(), WindowEnd::EndOfText, &mut out);
        } else {
            let edits = self.redactor.scanner.redact_lines(&self.pending_text, true);
            self.write_edits(&edits, &mut out);
        }
        self.pending_text = String::new();
        (self.line_start, self.searched_bytes, self.long_line) = (0, 0, None);
        out
    }

    /// Returns the number of bytes that are held back.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.pending_text.len() + self.undecoded_bytes.len()
            - self.long_line.as_ref().map_or(0, |long_line| long_line.context_bytes)
    }

    /// Returns the number of bytes of text in memory: the text that is held back, and its context.
    #[must_use]
    pub const fn buffered_bytes(&self) -> usize {
        self.pending_text.capacity() + self.undecoded_bytes.capacity()
    }

    /// Returns the number of redactions so far.
    #[must_use]
    pub const fn redaction_count(&self) -> u64 {
        self.redaction_count
    }

    fn decode(&mut self, bytes: &[u8]) {
        let joined;
        let mut input = bytes;
        if !self.undecoded_bytes.is_empty() {
            self.undecoded_bytes.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.undecoded_bytes);
            input = &joined;
        }
        if let Ok(text) = std::str::from_utf8(input) {
            return self.pending_text.push_str(text); // Most texts are valid UTF-8, and the check is fast.
        }
        let mut chunks = input.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.pending_text.push_str(chunk.valid());
            if chunks.peek().is_none() && is_incomplete_char(chunk.invalid()) {
                self.undecoded_bytes = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                self.pending_text.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    /// Performs one step; returns true if another step may follow.
    fn advance(&mut self, out: &mut String) -> bool {
        if self.long_line.is_some() { self.advance_long_line(out) } else { self.advance_lines(out) }
    }

    /// Redacts the whole lines that have arrived, unless one of them is long.
    fn advance_lines(&mut self, out: &mut String) -> bool {
        let window_bytes = self.redactor.window_bytes();
        let unsearched_bytes =
            self.pending_text.as_bytes().get(self.searched_bytes..).unwrap_or_default();
        if self.pending_text.len() - self.line_start < window_bytes {
            // Only text that was not searched before, or a line that grows byte by byte costs quadratic time.
            let newline = unsearched_bytes.iter().rposition(|byte| *byte == b'\n');
            let end = newline.map(|newline| self.searched_bytes + newline + 1);
            self.searched_bytes = self.pending_text.len();
            if let Some(end) = end {
                self.process_lines(end, out);
            }
            return false;
        }
        // The first line end decides, so that the result does not depend on how much text arrived at once.
        let newline = unsearched_bytes.iter().position(|byte| *byte == b'\n');
        let newline = newline.map(|at| self.searched_bytes + at);
        match newline {
            Some(newline) if newline - self.line_start < window_bytes => {
                self.searched_bytes = newline + 1;
                self.process_lines(newline + 1, out);
            }
            _ => self.long_line = Some(LongLine::with_context(0)),
        }
        true
    }

    /// Redacts all whole lines except those that continue.
    fn process_lines(&mut self, end: usize, out: &mut String) {
        let lines = self.pending_text.get(..end).unwrap_or_default();
        let edits = self.redactor.scanner.redact_lines(lines, false);
        self.write_edits(&edits, out);
        self.line_start = end;
        self.drop_front(edits.finished_bytes);
        self.drop_key_body_lines();
        self.release_closed_key_blocks(out);
    }

    fn write_edits(&mut self, edits: &TextEdits, out: &mut String) {
        edits.write(&self.pending_text, out);
        self.redaction_count += edits.redaction_count;
    }

    fn drop_front(&mut self, length: usize) {
        self.pending_text.drain(..length);
        self.line_start = self.line_start.saturating_sub(length);
        self.searched_bytes = self.searched_bytes.saturating_sub(length);
    }

    /// Drops the whole lines of an open block's body.
    fn drop_key_body_lines(&mut self) {
        let Some((_, body_start)) = self.unclosed_key_block() else { return };
        // The last line end stays: a footer contains none, and a long line starts after one.
        let body_end = self.line_start.saturating_sub(1);
        if body_end > body_start + DROPPED_BODY_PLACEHOLDER.len() {
            self.pending_text.replace_range(body_start..body_end, DROPPED_BODY_PLACEHOLDER);
            let dropped_bytes = body_end - body_start - DROPPED_BODY_PLACEHOLDER.len();
            self.line_start -= dropped_bytes;
            self.searched_bytes -= dropped_bytes;
        }
    }

    /// Releases closed blocks before an open one, once they are large.
    fn release_closed_key_blocks(&mut self, out: &mut String) {
        if self.line_start < self.redactor.window_bytes() {
            return;
        }
        if let Some((header_start, _)) = self.unclosed_key_block() {
            let edits = self
                .redactor
                .scanner
                .redact_lines(self.pending_text.get(..header_start).unwrap_or_default(), true);
            self.write_edits(&edits, out);
            self.drop_front(header_start);
        }
    }

    /// Returns the start of the header and of the body of the key that is still open after the whole lines.
    fn unclosed_key_block(&self) -> Option<(usize, usize)> {
        let lines = self.pending_text.get(..self.line_start)?;
        last_unclosed_key_block(lines).filter(|(_, body)| has_body(lines, *body, false))
    }

    /// Inspects the next window of a long line, or its end.
    fn advance_long_line(&mut self, out: &mut String) -> bool {
        let Some(long_line) = self.long_line.as_ref() else { return false };
        let (context, enlargements) = (long_line.context_bytes, long_line.enlargements);
        let from = self.searched_bytes.max(self.line_start);
        let unsearched_bytes = self.pending_text.as_bytes().get(from..).unwrap_or_default();
        let newline = unsearched_bytes.iter().position(|byte| *byte == b'\n').map(|at| from + at);
        self.searched_bytes = newline.unwrap_or(self.pending_text.len());
        let end = newline.map_or(self.pending_text.len(), |newline| newline + 1);
        let window_bytes = self.redactor.window_bytes() << enlargements;
        if end - context >= window_bytes {
            let end = self.pending_text.floor_char_boundary(context + window_bytes);
            let has_max_size = enlargements == MAX_ENLARGEMENTS;
            self.process_window(end, WindowEnd::Open { has_max_size }, out);
        } else if newline.is_some() {
            self.process_window(end, WindowEnd::EndOfLine, out);
        } else {
            return false;
        }
        true
    }

    /// Inspects a window that ends at `end_offset`, and performs the result.
    fn process_window(&mut self, end_offset: usize, window_end: WindowEnd, out: &mut String) {
        let Some(line) = self.long_line.as_mut() else { return };
        let text = self.pending_text.get(..end_offset).unwrap_or_default();
        let LongLine { context_bytes, oversized_secret, .. } = *line;
        let window = Window { text, context_bytes, oversized_secret, end: window_end };
        match self.redactor.inspect_window(&window) {
            // Escape sequences take most of the window; a larger one shows more of the visible text.
            WindowAction::NeedsMoreText => line.enlargements += 1,
            WindowAction::Release { cut, next_context_start, replacement } => {
                self.release_text(next_context_start..cut, replacement, out);
                if window_end == WindowEnd::EndOfLine {
                    self.finish_long_line();
                }
            }
            WindowAction::DropSecretMiddle(middle, oversized) => {
                self.drop_middle(&middle);
                self.long_line = self
                    .long_line
                    .take()
                    .map(|it| LongLine { oversized_secret: Some(oversized), ..it });
            }
            WindowAction::DropKeyBody(body_start) => {
                let footer = possible_footer_tail(text, body_start).len();
                self.drop_middle(&(body_start..end_offset - footer));
                self.pending_text.insert_str(body_start, DROPPED_BODY_PLACEHOLDER);
                // The inserted text contains no line end, so it need not be searched.
                self.searched_bytes += DROPPED_BODY_PLACEHOLDER.len();
            }
        }
    }

    /// Releases the text of a long line up to the end of `next_context`, or `replacement` in its place. The range
    /// `next_context` becomes the context of the next window.
    fn release_text(
        &mut self,
        next_context: Range<usize>,
        replacement: Option<(String, u64)>,
        out: &mut String,
    ) {
        let context = self.long_line.as_ref().map_or(0, |long_line| long_line.context_bytes);
        match replacement {
            Some((replacement, count)) => {
                out.push_str(&replacement);
                self.redaction_count += count;
            }
            None => {
                out.push_str(self.pending_text.get(context..next_context.end).unwrap_or_default());
            }
        }
        let from = self.pending_text.floor_char_boundary(next_context.start);
        self.drop_front(from);
        self.long_line = Some(LongLine::with_context(next_context.end - from));
    }

    /// Returns to line mode after the end of a long line. The part of it that was not released waits for a decision.
    fn finish_long_line(&mut self) {
        let context = self.long_line.take().map_or(0, |long_line| long_line.context_bytes);
        self.line_start = self.searched_bytes + 1;
        self.searched_bytes = self.line_start;
        self.drop_front(context);
    }

    fn drop_middle(&mut self, middle: &Range<usize>) {
        let dropped = middle.len();
        self.pending_text.drain(middle.clone());
        self.line_start =
            self.line_start.min(middle.start).max(self.line_start.saturating_sub(dropped));
        self.searched_bytes = self.searched_bytes.saturating_sub(dropped);
    }
}

/// Returns the last block, if it is open.
fn last_unclosed_key_block(text: &str) -> Option<(usize, usize)> {
    let mut from = 0;
    loop {
        match find_pem_block(text, from..text.len(), false) {
            PemBlock::NotFound => return None,
            PemBlock::Open(header, body) => return Some((header, body)),
            PemBlock::Closed(_, body) => from = body.end,
        }
    }
}

/// Returns true if bytes are the incomplete start of a character.
fn is_incomplete_char(bytes: &[u8]) -> bool {
    !bytes.is_empty() && std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
