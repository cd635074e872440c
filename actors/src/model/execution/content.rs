//! Content of messages and artifacts: raw in memory, and by reference in the ledger.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::text_range::TextRange;

/// Raw content of a part. The ledger stores its plain form redacted.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    /// Text content.
    Text(String),
    /// Any JSON value.
    Data(Value),
    /// Bytes of a file in base64, as transferred.
    Bytes(String),
    /// Address of a file.
    Url(String),
}

impl Content {
    /// Returns true for a file: its bytes or its address.
    #[must_use]
    pub const fn is_file(&self) -> bool {
        matches!(self, Self::Bytes(_) | Self::Url(_))
    }
}

/// Decodes base64 of either alphabet, with or without padding, as the JSON forms of A2A allow.
#[must_use]
pub fn decode_base64(encoded: &str) -> Option<Vec<u8>> {
    let standard = encoded.trim_end_matches('=').replace('-', "+").replace('_', "/");
    STANDARD_NO_PAD.decode(standard).ok()
}

impl fmt::Debug for Content {
    /// Writes the kind only: content may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text(_) => "Text",
            Self::Data(_) => "Data",
            Self::Bytes(_) => "Bytes",
            Self::Url(_) => "Url",
        })
    }
}

/// Raw part of a message or an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Content of the part.
    pub content: Content,
    /// File name of the part.
    pub filename: Option<String>,
    /// Media type of the part.
    pub media_type: Option<String>,
}

impl Part {
    /// Creates a text part.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: Content::Text(text.into()), filename: None, media_type: None }
    }
}

/// Kind of a stored part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PartKind")]
#[serde(rename_all = "lowercase")]
pub enum PartKind {
    /// Text content.
    Text,
    /// JSON value.
    Data,
    /// Bytes of a file in base64.
    Bytes,
    /// Address of a file.
    Url,
}

/// Stored part: a reference to redacted text in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Part")]
#[serde(rename_all = "camelCase")]
pub struct StoredPart {
    /// Kind of the content.
    pub kind: PartKind,
    /// Location of the text in the ledger.
    pub text: TextRange,
    /// File name of the part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// Media type of the part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Number of redacted places in the text.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redacted: u64,
    /// Bytes of the part that were dropped because the part was longer than the agent's limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
}

impl StoredPart {
    /// Creates a stored text part.
    #[must_use]
    pub const fn text(text: TextRange) -> Self {
        let (filename, media_type) = (None, None);
        Self { kind: PartKind::Text, text, filename, media_type, redacted: 0, dropped: 0 }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls takes a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::decode_base64;

    #[test]
    fn base64_is_read_in_either_alphabet() {
        for encoded in ["+/8=", "-_8=", "-_8"] {
            assert_eq!(decode_base64(encoded), Some(vec![0xfb, 0xff]), "{encoded}");
        }
        assert_eq!((decode_base64("a"), decode_base64("a b?")), (None, None));
    }
}
