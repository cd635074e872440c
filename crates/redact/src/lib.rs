//! Redactor: removes secrets from all text that is stored or shown.
//!
//! A secret is recognized by its format (vendors' prefixes, signed tokens, private keys), by its context (keys,
//! headers, addresses, command lines) or because it was registered. Terminal escape sequences do not hide a secret. A
//! second redaction of the same text changes nothing.
//!
//! A text is searched once for the literals that every rule needs, and rules run only on lines
//! that contain one. A line of any length is inspected in windows of bounded size, so all work is
//! linear in the length of the text.

use std::borrow::Cow;

mod configuration;
mod literals;
mod rules;
mod scan;
mod spans;
mod stream;
#[cfg(test)]
mod tests;
mod text;

use configuration::patterns::RedactionPatterns;
pub use configuration::{Pattern, PatternError, RedactionConfig};
use literals::matcher::LiteralMatcher;
use scan::Scanner;
pub use stream::StreamRedactor;

/// Redactor of secrets in text.
pub struct Redactor {
    scanner: Scanner,
}

impl Redactor {
    /// Shortest value in characters that is redacted; a shorter one would match too much by chance.
    pub const MIN_VALUE_CHARS: usize = literals::encode::MIN_FORM_LENGTH;

    /// Creates a redactor with exact values that are redacted besides the known formats.
    ///
    /// A value is also redacted in its usual encoded and escaped forms, and each line of it separately. Values and
    /// lines of fewer than [`MIN_VALUE_CHARS`](Self::MIN_VALUE_CHARS) characters are ignored.
    #[must_use]
    pub fn new(registered_values: impl IntoIterator<Item = String>) -> Self {
        let literals = LiteralMatcher::new(registered_values);
        Self {
            scanner: Scanner {
                literals,
                patterns: RedactionPatterns::default(),
                redacts_personal_numbers: false,
                redacts_emails: true,
            },
        }
    }

    /// Leaves e-mail addresses as they are: they are personal data, but no secrets.
    #[must_use]
    pub const fn without_emails(mut self) -> Self {
        self.scanner.redacts_emails = false;
        self
    }

    /// Adds the configured redaction. Patterns apply to one line at a time, as a reader sees it. Personal numbers are
    /// searched in every line, which costs speed.
    #[must_use]
    pub fn with_configuration(mut self, config: RedactionConfig) -> Self {
        let RedactionConfig { patterns, redacts_personal_numbers: personal } = config;
        (self.scanner.patterns, self.scanner.redacts_personal_numbers) =
            (RedactionPatterns::new(patterns), personal);
        self
    }

    /// Redacts a whole text. A text without a secret is returned unchanged.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redact_and_count(text).0
    }

    /// Redacts a whole text, and returns the number of redactions.
    #[must_use]
    pub fn redact_and_count<'t>(&self, text: &'t str) -> (Cow<'t, str>, u64) {
        // A stream cuts such a line into windows, and a window may judge a secret by less text than the whole line
        // has.
        if self.has_long_line(text) {
            return self.redact_long_lines(text);
        }
        let edits = self.scanner.redact_lines(text, true);
        if edits.replacements.is_empty() {
            return (Cow::Borrowed(text), 0);
        }
        let mut out = String::with_capacity(text.len());
        edits.write(text, &mut out);
        (Cow::Owned(out), edits.redaction_count)
    }

    /// Returns true if a line is so long that a stream would not hold it back as a whole.
    fn has_long_line(&self, text: &str) -> bool {
        let window_bytes = self.window_bytes();
        let mut rest = text.as_bytes();
        while let Some(window) = rest.get(..window_bytes) {
            // From the back: the search then continues after the last line end of the window and skips what lies
            // before it.
            let Some(newline) = window.iter().rposition(|byte| *byte == b'\n') else {
                return true;
            };
            rest = rest.get(newline + 1..).unwrap_or_default();
        }
        false
    }

    /// Redacts a text with long lines exactly as a stream does, so that both results are equal.
    fn redact_long_lines<'t>(&self, text: &'t str) -> (Cow<'t, str>, u64) {
        let mut stream = StreamRedactor::new(self);
        let mut out = String::with_capacity(text.len());
        stream.push_to(text.as_bytes(), &mut out);
        out.push_str(&stream.finish());
        if stream.redaction_count() == 0 {
            (Cow::Borrowed(text), 0)
        } else {
            (Cow::Owned(out), stream.redaction_count())
        }
    }
}
