//! What messages and artifacts are made of: raw in memory, kept by reference in the ledger.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::event::Span;

/// The content of a part, raw. It lives in memory only.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    /// Text.
    Text(String),
    /// Any JSON.
    Data(Value),
    /// A file's bytes in base64, as they travel.
    Bytes(String),
    /// Where a file is.
    Url(String),
}

impl fmt::Debug for Content {
    /// Names the kind only: content may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text(_) => "Text",
            Self::Data(_) => "Data",
            Self::Bytes(_) => "Bytes",
            Self::Url(_) => "Url",
        })
    }
}

/// One part, raw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it holds.
    pub content: Content,
    /// The name of its file.
    pub filename: Option<String>,
    /// Its media type.
    pub media_type: Option<String>,
}

impl Part {
    /// A part of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: Content::Text(text.into()), filename: None, media_type: None }
    }
}

/// The kind of a kept part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PartKind")]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Text.
    Text,
    /// JSON.
    Data,
    /// A file's bytes in base64.
    Bytes,
    /// Where a file is.
    Url,
}

/// One part as it is kept: redacted text somewhere in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Part")]
pub struct Piece {
    /// What the text is.
    pub of: Kind,
    /// Where it stands.
    pub text: Span,
    /// The name of its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// How many places of it are masked.
    #[serde(default, skip_serializing_if = "is_none")]
    pub redacted: u64,
}

impl Piece {
    /// A piece of text.
    #[must_use]
    pub const fn text(text: Span) -> Self {
        Self { of: Kind::Text, text, filename: None, media_type: None, redacted: 0 }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls takes a reference")]
const fn is_none(count: &u64) -> bool {
    *count == 0
}
