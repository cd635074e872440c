//! Content of an event: texts, JSON values, files and addresses.

use algonius_actors::model::execution::content::{Content, Part};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::drivers::adapters::file_parts::{NamedFile, ReportedPart};

/// Content: a list of parts, or parts in the event itself.
#[derive(Debug, Deserialize)]
#[serde(try_from = "ContentMembers")]
pub(in crate::drivers) enum EventContent {
    /// Parts of a program.
    Reported(ReportedContent),
    /// Single text.
    Text(String),
    /// Parts that did not come from a program, and name no file of this machine.
    Parts(Vec<Part>),
}

/// Parts that a program reports.
#[derive(Debug)]
pub(in crate::drivers) struct ReportedContent {
    parts: Vec<ContentPart>,
    unreadable_member: UnreadableMember,
}

/// File or address beside the content that has another form than those that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum UnreadableMember {
    /// There is none.
    None,
    /// File that is a text: perhaps its path, perhaps only the place that the content is about.
    FileAsText,
    /// Content that is lost.
    LostContent,
}

/// Part of the content, with the name and the type that the program gave it.
#[derive(Debug)]
pub(in crate::drivers) struct ContentPart {
    value: PartValue,
    name: Option<String>,
    media_type: Option<String>,
}

/// Value of a part.
#[derive(Debug)]
enum PartValue {
    Text(String),
    Data(Value),
    File(ReportedFile),
    Url(String),
}

/// Members of an event that are its content. A program may give several, and none of them is dropped.
#[derive(Deserialize)]
struct ContentMembers {
    parts: Option<Vec<PartMembers>>,
    #[serde(flatten)]
    own: PartMembers,
}

/// Members of a part.
#[derive(Deserialize)]
struct PartMembers {
    text: Option<String>,
    #[serde(default, deserialize_with = "present_value")]
    data: Option<Value>,
    file: Option<Value>,
    url: Option<Value>,
    #[serde(flatten)]
    label: PartLabel,
}

/// Name and type of a part, in the words of this protocol and of both versions of A2A. Values that are no texts are
/// ignored, as no content is lost with them.
#[derive(Debug, Deserialize)]
struct PartLabel {
    name: Option<Value>,
    filename: Option<Value>,
    media_type: Option<Value>,
    #[serde(rename = "mediaType")]
    a2a_media_type: Option<Value>,
    #[serde(rename = "mimeType")]
    mime_type: Option<Value>,
}

impl PartLabel {
    fn name(&self) -> Option<String> {
        first_text([&self.name, &self.filename])
    }

    fn media_type(&self) -> Option<String> {
        first_text([&self.media_type, &self.a2a_media_type, &self.mime_type])
    }
}

fn first_text<const N: usize>(values: [&Option<Value>; N]) -> Option<String> {
    values.into_iter().flatten().find_map(Value::as_str).map(str::to_owned)
}

/// Reads a value that is present. Without this, `null` would count as absent.
fn present_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// File: in base64, as text, or by its path.
#[derive(Debug, Deserialize)]
struct ReportedFile {
    bytes: Option<String>,
    text: Option<String>,
    path: Option<String>,
    #[serde(flatten)]
    label: PartLabel,
}

impl TryFrom<ContentMembers> for EventContent {
    type Error = &'static str;

    fn try_from(ContentMembers { parts, own }: ContentMembers) -> Result<Self, Self::Error> {
        let (has_list, mut reported) = (parts.is_some(), Vec::new());
        let mut unreadable_member = own.unreadable_member();
        for part in parts.into_iter().flatten() {
            unreadable_member = unreadable_member.max(part.unreadable_member());
            let values = part.into_content();
            if values.is_empty() {
                return Err("a part has no content");
            }
            reported.extend(values);
        }
        let mut own_content = own.into_content();
        if !reported.is_empty() {
            own_content.retain(|part| !part.is_null());
        }
        reported.extend(own_content);
        if reported.is_empty() && !has_list {
            return Err("there is no content");
        }
        Ok(Self::Reported(ReportedContent { parts: reported, unreadable_member }))
    }
}

impl PartMembers {
    /// Returns the file or address that is not read. Many programs write all members of their own data type, so an
    /// empty value is none.
    fn unreadable_member(&self) -> UnreadableMember {
        let file = self.file.as_ref().filter(|file| !is_empty(file));
        let url = self.url.as_ref().filter(|url| !is_empty(url));
        let file_member = match file {
            None => UnreadableMember::None,
            Some(Value::String(_)) => UnreadableMember::FileAsText,
            Some(file) if ReportedFile::deserialize(file).is_ok() => UnreadableMember::None,
            Some(_) => UnreadableMember::LostContent,
        };
        let is_url_lost = url.is_some_and(|url| !url.is_string());
        if is_url_lost { UnreadableMember::LostContent } else { file_member }
    }

    /// Returns a part for each member that has content. A `null`, or a file or address of another form, counts only if
    /// nothing else has: many programs write all members of their own data type.
    fn into_content(self) -> Vec<ContentPart> {
        let Self { text, data, file, url, label } = self;
        let file = file.filter(|file| !is_empty(file));
        let file = file.and_then(|file| serde_json::from_value(file).ok());
        let url = url.filter(|url| !is_empty(url));
        let url = url.as_ref().and_then(Value::as_str).map(str::to_owned);
        let values = [
            text.map(PartValue::Text),
            data.map(PartValue::Data),
            file.map(PartValue::File),
            url.map(PartValue::Url),
        ];
        let (name, media_type) = (label.name(), label.media_type());
        let to_part = |value| {
            let (name, media_type) = (name.clone(), media_type.clone());
            ContentPart { value, name, media_type }
        };
        let mut parts: Vec<_> = values.into_iter().flatten().map(to_part).collect();
        if parts.len() > 1 {
            parts.retain(|part| !part.is_null());
        }
        parts
    }
}

/// Returns true for a value that has nothing to deliver.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

impl EventContent {
    /// Returns the file or address beside the content that was not read.
    pub(super) const fn unreadable_member(&self) -> UnreadableMember {
        match self {
            Self::Reported(ReportedContent { unreadable_member: unread, .. }) => *unread,
            Self::Text(_) | Self::Parts(_) => UnreadableMember::None,
        }
    }

    /// Returns content with a single text.
    pub(in crate::drivers) const fn text(text: String) -> Self {
        Self::Text(text)
    }

    /// Returns the parts, or `None` if there are none or one cannot be read.
    pub(in crate::drivers::adapters) fn into_parts(self) -> Option<Vec<ReportedPart>> {
        let parts: Vec<_> = match self {
            Self::Reported(ReportedContent { parts, .. }) => {
                parts.into_iter().map(ContentPart::into_part).collect::<Option<_>>()?
            }
            Self::Text(text) => vec![ReportedPart::Part(Part::text(text))],
            Self::Parts(parts) => parts.into_iter().map(ReportedPart::Part).collect(),
        };
        Some(parts).filter(|parts| !parts.is_empty())
    }
}

impl ContentPart {
    const fn is_null(&self) -> bool {
        matches!(self.value, PartValue::Data(Value::Null))
    }

    fn into_part(self) -> Option<ReportedPart> {
        let Self { value, name, media_type } = self;
        let (content, filename) = match value {
            PartValue::Text(text) => (Content::Text(text), None),
            PartValue::Data(data) => (Content::Data(data), None),
            PartValue::File(file) => return file.into_part(name, media_type),
            PartValue::Url(url) => (Content::Url(url), name),
        };
        Some(ReportedPart::Part(Part { content, filename, media_type }))
    }
}

impl ReportedFile {
    /// Returns the file as a part. Stored base64 is always decodable, so readers need not check it. A name and a type
    /// beside the file count if the file itself has none.
    fn into_part(self, name: Option<String>, media_type: Option<String>) -> Option<ReportedPart> {
        let Self { bytes, text, path, label } = self;
        let (name, media_type) = (label.name().or(name), label.media_type().or(media_type));
        let encoded = match (bytes, text, path) {
            (Some(encoded), None, None) => STANDARD.decode(&encoded).is_ok().then_some(encoded)?,
            (None, Some(text), None) => STANDARD.encode(text),
            (None, None, Some(path)) => {
                return Some(ReportedPart::NamedFile(NamedFile { path, name, media_type }));
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
