//! Buffer for the redacted end of a text that is too short for a channel, and short enough for an event.

use std::sync::Arc;

use algonius_redact::Redactor;

use crate::decide::output::truncation::{TailBuffer, truncate_to_tail, truncation_marker};

/// Buffer that receives a text of any length, and returns its end.
pub struct RedactedTail {
    redactor: Arc<Redactor>,
    tail: TailBuffer,
    max_bytes: usize,
}

impl RedactedTail {
    /// Creates a buffer that returns `max_bytes` bytes of redacted text.
    pub(super) fn new(redactor: Arc<Redactor>, max_bytes: usize) -> Self {
        let tail = TailBuffer::new(max_bytes + redactor.required_context_bytes());
        Self { redactor, tail, max_bytes }
    }

    /// Appends raw bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.tail.push(bytes);
    }

    /// Returns the end of the text, after a marker for the missing bytes. A secret that started before the end is
    /// redacted too.
    #[must_use]
    pub fn into_text(self) -> String {
        let Self { redactor, tail, max_bytes } = self;
        let (lost_bytes, bytes) = tail.into_parts();
        let mut text = if lost_bytes == 0 {
            redactor.redact(&String::from_utf8_lossy(&bytes)).into_owned()
        } else {
            redactor.redact_text_end(&bytes, bytes.len().saturating_sub(max_bytes)).0
        };
        let cut = truncate_to_tail(&mut text, max_bytes);
        if lost_bytes + cut > 0 {
            text.insert_str(0, truncation_marker(lost_bytes + cut).trim_start());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "hush-hush-hush-hush";

    fn redacted_tail_text(text: &str) -> String {
        let mut tail = RedactedTail::new(Arc::new(Redactor::new([SECRET.to_owned()])), 100);
        text.as_bytes().chunks(7).for_each(|bytes| tail.push(bytes));
        tail.into_text()
    }

    #[test]
    fn a_short_text_is_kept_whole_except_for_secrets() {
        let text = redacted_tail_text(&format!("one\n{SECRET}\ntwo\n"));
        assert!(text.starts_with("one\n") && text.ends_with("\ntwo\n"), "{text}");
        assert!(!text.contains("hush"), "{text}");
    }

    #[test]
    fn a_long_text_keeps_its_tail_and_no_part_of_a_secret() {
        for before in [0, 1, 5_000, 200_000] {
            for after in 75..100 {
                let text = format!("{}{SECRET}{}\n", "a b\n".repeat(before), "x".repeat(after));
                let last = redacted_tail_text(&text);
                assert!(!last.contains("hush"), "{last}");
                assert!(last.len() < 160, "{last}");
                assert!(before < 1000 || last.starts_with("[... "), "{last}");
            }
        }
    }
}
