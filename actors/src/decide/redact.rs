//! The one redactor: masks secrets in all that is stored or shown.
//!
//! A secret is known by its own shape (vendors' prefixes, signed tokens, private keys), by where
//! it stands (keys, headers, addresses, command lines) or because it was registered. Escapes of a
//! terminal do not hide it. What is masked once is not changed by masking it again.
//!
//! A text is searched once for the literals that every rule needs, and rules run only on lines
//! that have one. All work is linear in the length of the text.

use std::borrow::Cow;

use crate::model::redaction::Redaction;

mod ansi;
mod edge;
mod email;
mod encode;
mod end;
mod exact;
mod heads;
mod pairs;
mod pattern;
mod patterns;
mod pem;
mod personal;
mod places;
mod plausible;
mod rules;
mod scan;
mod segment;
mod shapes;
mod sieve;
mod span;
mod stream;
#[cfg(test)]
mod tests;
mod value;
mod window;

use exact::Exact;
use patterns::Patterns;
use scan::Scanner;
pub use stream::Stream;

/// Masks secrets in text.
pub struct Redactor {
    scanner: Scanner,
}

impl Redactor {
    /// Takes exact values that are masked besides the known shapes.
    ///
    /// A value is masked also where it is encoded or escaped in a usual way, and each of its
    /// lines by itself. Values and lines of fewer than eight characters are not taken.
    #[must_use]
    pub fn new(registered: impl IntoIterator<Item = String>) -> Self {
        let exact = Exact::new(registered);
        Self { scanner: Scanner { exact, patterns: Patterns::default(), personal: false } }
    }

    /// Masks what is configured besides. Patterns see one line at a time, as a reader sees it. Numbers
    /// of people are looked for in every line, which costs speed.
    #[must_use]
    pub fn with(mut self, configured: Redaction) -> Self {
        let Redaction { patterns, personal } = configured;
        (self.scanner.patterns, self.scanner.personal) = (Patterns::new(patterns), personal);
        self
    }

    /// Masks a whole text. A text without a secret is given back as it is.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redact_and_count(text).0
    }

    /// Masks a whole text, and tells how many places were masked.
    #[must_use]
    pub fn redact_and_count<'t>(&self, text: &'t str) -> (Cow<'t, str>, u64) {
        let edits = self.scanner.work(text, true);
        if edits.edits.is_empty() {
            return (Cow::Borrowed(text), 0);
        }
        let mut out = String::with_capacity(text.len());
        edits.write(text, &mut out);
        (Cow::Owned(out), edits.count)
    }
}
