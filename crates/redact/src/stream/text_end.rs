//! Redacts the end of a text whose start is not available: a secret that was cut must not be shown.

use std::sync::Arc;

use crate::rules::pem::end_of_unmatched_footer;
use crate::spans::STARS;
use crate::{Redactor, StreamRedactor};

/// Number of windows before a text that suffice to determine the context of its start.
const CONTEXT_WINDOWS: usize = 5;

impl Redactor {
    /// Returns the number of bytes before a position that must be known to redact the text from that position on.
    #[must_use]
    pub fn required_context_bytes(&self) -> usize {
        CONTEXT_WINDOWS * self.window_bytes()
    }

    /// Redacts the text after the first `context_bytes` bytes, and returns it with the number of
    /// redacted places. The context may start within a secret. A small part of the context may be
    /// at the start of the returned text.
    ///
    /// A secret that started before the context and is longer than the context is recognized only
    /// by its own line: in a run without white space that fills a whole context, the rest of the
    /// secret looks like other text.
    #[must_use]
    pub fn redact_text_end(self: &Arc<Self>, bytes: &[u8], context_bytes: usize) -> (String, u64) {
        let from = self.safe_start(bytes, context_bytes);
        // A run without a starting position, of which too little is known.
        let mut out = if from > context_bytes { STARS.to_owned() } else { String::new() };
        let mut stream = StreamRedactor::new(Arc::clone(self));
        if let Some(preceding) = bytes.get(from..context_bytes) {
            stream.push(preceding); // The result precedes the text and is dropped.
            if stream.held_bytes() > self.required_context_bytes() / 2 {
                return self.redact_from_next_line(bytes, context_bytes);
            }
        }
        let count_before = stream.redaction_count();
        stream.push_to(bytes.get(from.max(context_bytes)..).unwrap_or_default(), &mut out);
        out.push_str(&stream.finish());
        (out, stream.redaction_count() - count_before)
    }

    /// Returns the text from its next line on, because nothing is known about the present line.
    fn redact_from_next_line(
        self: &Arc<Self>,
        bytes: &[u8],
        context_bytes: usize,
    ) -> (String, u64) {
        let rest = bytes.get(context_bytes..).unwrap_or_default();
        let line_length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        let mut stream = StreamRedactor::new(Arc::clone(self));
        let text = stream.push(rest.get(line_length..).unwrap_or_default()) + &stream.finish();
        (format!("{STARS}{text}"), stream.redaction_count() + 1)
    }

    /// Returns the position to start at: after the first line end or, in a long line, after white space, but
    /// not within the body of a key. A secret that is cut there ends long before the text starts. In a run
    /// without white space it ends before the text as well, if a whole context of the run is known.
    fn safe_start(&self, bytes: &[u8], context_bytes: usize) -> usize {
        let position_after = |found: Option<usize>| found.map(|at| at + 1);
        let preceding = bytes.get(..context_bytes / 2).unwrap_or(bytes);
        let after_line_end = position_after(preceding.iter().position(|byte| *byte == b'\n'));
        let after_space = || position_after(preceding.iter().position(u8::is_ascii_whitespace));
        let full_context_start = || (context_bytes >= self.required_context_bytes()).then_some(0);
        let later_space = || position_after(bytes.iter().position(u8::is_ascii_whitespace));
        let from = after_line_end
            .or_else(after_space)
            .or_else(full_context_start)
            .or_else(later_space)
            .unwrap_or(bytes.len());
        from.max(end_of_unmatched_footer(bytes).unwrap_or(0))
    }
}
