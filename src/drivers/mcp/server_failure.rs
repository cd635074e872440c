//! Failure of a server, as a model may read it.

use algonius_actors::ports::tools::TextRedactor;

use crate::drivers::output::error_tail::redacted_tail;

/// Failure of a server.
#[derive(Debug, Clone, Default)]
pub(super) struct ServerFailure {
    /// Sentence without a period and without a text of the server.
    pub(super) sentence: String,
    /// Text of the server: its error output or the message of its refusal. Raw: it may contain secrets.
    pub(super) server_text: String,
    /// True if `server_text` is the end of a longer text.
    pub(super) is_cut: bool,
}

impl ServerFailure {
    /// Creates a failure without a text of the server.
    pub(super) fn new(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), ..Self::default() }
    }

    /// Returns the sentence with the redacted text of the server.
    pub(super) fn redacted_sentence_with_server_text(&self, redactor: &TextRedactor) -> String {
        match redacted_tail((&self.server_text, self.is_cut), redactor) {
            Some(quote) => format!("{}: {quote}", self.sentence),
            None => self.sentence.clone(),
        }
    }
}
