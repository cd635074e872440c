//! Stored form of raw parts: the redacted text, and whether redaction changed it.

use algonius_redact::Redactor;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::model::execution::AttemptId;
use crate::model::execution::content::{Content, Part, PartKind, StoredPart};
use crate::model::execution::event::{TextChannel, TextRange};

/// Parts in stored form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredParts {
    /// Redacted text of all parts, one after the other.
    pub text: String,
    /// Location of each part in the text.
    pub pieces: Vec<StoredPart>,
    /// True if nothing was redacted, so that the parts can be read back unchanged.
    pub is_unredacted: bool,
}

/// Redacted part without a location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedactedPart {
    kind: PartKind,
    text: String,
    filename: Option<String>,
    media_type: Option<String>,
    redacted: u64,
    dropped: u64,
    is_unchanged: bool,
}

impl RedactedPart {
    /// Redacts one part.
    #[must_use]
    pub fn redact(part: &Part, redactor: &Redactor) -> Self {
        let (kind, text, redacted) = redact_content(&part.content, redactor);
        let (filename, media_type) = (part.filename.clone(), part.media_type.clone());
        Self { kind, text, filename, media_type, redacted, dropped: 0, is_unchanged: redacted == 0 }
    }

    /// Creates the part from a stored part and its text.
    #[must_use]
    pub fn from_stored(piece: &StoredPart, text: String) -> Self {
        let (filename, media_type) = (piece.filename.clone(), piece.media_type.clone());
        let (kind, redacted, dropped) = (piece.kind, piece.redacted, piece.dropped);
        Self { kind, text, filename, media_type, redacted, dropped, is_unchanged: true }
    }

    /// Creates the part from a text that was redacted before in this many places.
    #[must_use]
    pub const fn from_redacted_text(text: String, redacted: u64) -> Self {
        let (kind, filename, media_type) = (PartKind::Text, None, None);
        Self { kind, text, filename, media_type, redacted, dropped: 0, is_unchanged: true }
    }

    /// Returns the part with `dropped` additional missing bytes.
    #[must_use]
    pub const fn with_dropped(mut self, dropped: u64) -> Self {
        self.dropped += dropped;
        self
    }
}

/// Redacts parts, and places them on a channel, starting at an offset.
#[must_use]
pub fn redact(
    parts: &[Part],
    redactor: &Redactor,
    attempt_id: AttemptId,
    channel: TextChannel,
    offset: u64,
) -> StoredParts {
    let redacted_parts = parts.iter().map(|part| RedactedPart::redact(part, redactor));
    assign_ranges(redacted_parts, TextRange { attempt_id, channel, from: offset, to: offset })
}

/// Places redacted parts one after the other, starting at an empty range.
#[must_use]
pub fn assign_ranges(
    parts: impl IntoIterator<Item = RedactedPart>,
    start: TextRange,
) -> StoredParts {
    let mut stored = StoredParts { text: String::new(), pieces: Vec::new(), is_unredacted: true };
    for RedactedPart { kind, text, filename, media_type, redacted, dropped, is_unchanged } in parts
    {
        let from = start.from + stored.text.len() as u64;
        stored.text.push_str(&text);
        let text = TextRange { from, to: start.from + stored.text.len() as u64, ..start };
        stored.pieces.push(StoredPart { kind, text, filename, media_type, redacted, dropped });
        stored.is_unredacted &= is_unchanged;
    }
    stored
}

/// Returns the stored form of a content, with the number of redactions.
fn redact_content(content: &Content, redactor: &Redactor) -> (PartKind, String, u64) {
    let redact = |kind, text: &str| {
        let (redacted, count) = redactor.redact_and_count(text);
        (kind, redacted.into_owned(), count)
    };
    match content {
        Content::Text(text) => redact(PartKind::Text, text),
        Content::Url(url) => redact(PartKind::Url, url),
        Content::Data(data) => redact(PartKind::Data, &data.to_string()),
        Content::Bytes(encoded) => redact_bytes(encoded, redactor),
    }
}

/// Redacts text inside a file like other text; bytes that are not text are stored unchanged.
fn redact_bytes(encoded: &str, redactor: &Redactor) -> (PartKind, String, u64) {
    let decoded = STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let redacted = decoded.as_deref().map(|text| redactor.redact_and_count(text));
    match redacted {
        None | Some((_, 0)) => (PartKind::Bytes, encoded.to_owned(), 0),
        Some((redacted, count)) => (PartKind::Bytes, STANDARD.encode(redacted.as_bytes()), count),
    }
}
