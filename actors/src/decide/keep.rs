//! How raw parts are kept: what is written of each, and whether it is still what it was.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::decide::redact::Redactor;
use crate::model::content::{Content, Kind, Part, Piece};
use crate::model::event::{Channel, Span};
use crate::model::execution::Stamp;

/// Parts as they are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The redacted text of all parts, one after the other.
    pub text: String,
    /// Where each part stands in it.
    pub pieces: Vec<Piece>,
    /// Whether nothing was masked, so that the parts can be read back as they were.
    pub is_whole: bool,
}

/// A part that is masked and has no place yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Masked {
    of: Kind,
    text: String,
    filename: Option<String>,
    media_type: Option<String>,
    redacted: u64,
    is_whole: bool,
}

impl Masked {
    /// Masks a part by itself.
    #[must_use]
    pub fn part(part: &Part, redactor: &Redactor) -> Self {
        let (of, text, redacted) = masked(&part.content, redactor);
        let (filename, media_type) = (part.filename.clone(), part.media_type.clone());
        Self { of, text, filename, media_type, redacted, is_whole: redacted == 0 }
    }

    /// Takes a part that was kept before, with its text.
    #[must_use]
    pub fn kept(piece: &Piece, text: String) -> Self {
        let (filename, media_type) = (piece.filename.clone(), piece.media_type.clone());
        let (of, redacted) = (piece.of, piece.redacted);
        Self { of, text, filename, media_type, redacted, is_whole: true }
    }

    /// Takes a text that was masked in so many places where it came from.
    #[must_use]
    pub const fn text(text: String, redacted: u64) -> Self {
        let (of, filename, media_type) = (Kind::Text, None, None);
        Self { of, text, filename, media_type, redacted, is_whole: true }
    }
}

/// Masks parts, and lays them out on a channel from an offset on.
#[must_use]
pub fn keep(
    parts: &[Part],
    redactor: &Redactor,
    stamp: Stamp,
    channel: Channel,
    from: u64,
) -> Kept {
    let masked = parts.iter().map(|part| Masked::part(part, redactor));
    lay(masked, Span { stamp, channel, from, to: from })
}

/// Lays masked parts out, one after the other, from where an empty span stands.
#[must_use]
pub fn lay(parts: impl IntoIterator<Item = Masked>, at: Span) -> Kept {
    let mut kept = Kept { text: String::new(), pieces: Vec::new(), is_whole: true };
    for Masked { of, text, filename, media_type, redacted, is_whole } in parts {
        let from = at.from + kept.text.len() as u64;
        kept.text.push_str(&text);
        let text = Span { from, to: at.from + kept.text.len() as u64, ..at };
        kept.pieces.push(Piece { of, text, filename, media_type, redacted });
        kept.is_whole &= is_whole;
    }
    kept
}

/// What is kept of a content, and in how many places it was masked.
fn masked(content: &Content, redactor: &Redactor) -> (Kind, String, u64) {
    let mask = |kind, text: &str| {
        let (masked, count) = redactor.redact_and_count(text);
        (kind, masked.into_owned(), count)
    };
    match content {
        Content::Text(text) => mask(Kind::Text, text),
        Content::Url(url) => mask(Kind::Url, url),
        Content::Data(data) => mask(Kind::Data, &data.to_string()),
        Content::Bytes(encoded) => bytes(encoded, redactor),
    }
}

/// Text inside a file is masked as any other; bytes that are no text are kept as they are.
fn bytes(encoded: &str, redactor: &Redactor) -> (Kind, String, u64) {
    let decoded = STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let masked = decoded.as_deref().map(|text| redactor.redact_and_count(text));
    match masked {
        None | Some((_, 0)) => (Kind::Bytes, encoded.to_owned(), 0),
        Some((masked, count)) => (Kind::Bytes, STANDARD.encode(masked.as_bytes()), count),
    }
}
