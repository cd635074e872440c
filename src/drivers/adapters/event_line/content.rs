//! Content of an event: texts, JSON values, files and addresses.

use algonius_actors::model::execution::content::{Content, Part};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use crate::drivers::adapters::file_parts::{NamedFile, ReportedPart};

/// Content: a list of parts, or a single part in the event itself.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(in crate::drivers) enum EventContent {
    /// List of parts.
    Many { parts: Vec<ContentPart> },
    /// Single part.
    One(ContentPart),
    /// Parts that did not come from a program, and name no file of this machine.
    #[serde(skip)]
    Parts(Vec<Part>),
}

/// Part of the content.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(in crate::drivers) enum ContentPart {
    /// Text.
    Text { text: String },
    /// JSON value.
    Data { data: Value },
    /// A file.
    File { file: ReportedFile },
    /// URL of a file.
    Url { url: String, name: Option<String>, media_type: Option<String> },
}

/// File: in base64, as text, or by its path.
#[derive(Debug, Deserialize)]
pub(in crate::drivers) struct ReportedFile {
    name: Option<String>,
    media_type: Option<String>,
    bytes: Option<String>,
    text: Option<String>,
    path: Option<String>,
}

impl EventContent {
    /// Returns content with a single text.
    pub(in crate::drivers) const fn text(text: String) -> Self {
        Self::One(ContentPart::Text { text })
    }

    /// Returns the parts, or `None` if there are none or one cannot be read.
    pub(in crate::drivers::adapters) fn into_parts(self) -> Option<Vec<ReportedPart>> {
        let content = match self {
            Self::Many { parts } => parts,
            Self::One(part) => vec![part],
            Self::Parts(parts) => {
                let items: Vec<_> = parts.into_iter().map(ReportedPart::Part).collect();
                return Some(items).filter(|items| !items.is_empty());
            }
        };
        if content.is_empty() {
            None
        } else {
            content.into_iter().map(ContentPart::into_part).collect()
        }
    }
}

impl ContentPart {
    fn into_part(self) -> Option<ReportedPart> {
        Some(ReportedPart::Part(match self {
            Self::Text { text } => Part::text(text),
            Self::Data { data } => unnamed_part(Content::Data(data)),
            Self::File { file } => return file.into_part(),
            Self::Url { url, name, media_type } => {
                Part { content: Content::Url(url), filename: name, media_type }
            }
        }))
    }
}

impl ReportedFile {
    /// Returns the file as a part. Stored base64 is always decodable, so readers need not check it.
    fn into_part(self) -> Option<ReportedPart> {
        let Self { name, media_type, bytes, text, path } = self;
        let encoded = match (bytes, text, path) {
            (Some(encoded), None, None) => STANDARD.decode(&encoded).is_ok().then_some(encoded)?,
            (None, Some(text), None) => STANDARD.encode(text),
            (None, None, Some(path)) => {
                return Some(ReportedPart::Named(NamedFile { path, name, media_type }));
            }
            _ => return None,
        };
        Some(ReportedPart::Part(Part {
            content: Content::Bytes(encoded),
            filename: name,
            media_type,
        }))
    }
}

const fn unnamed_part(content: Content) -> Part {
    Part { content, filename: None, media_type: None }
}
