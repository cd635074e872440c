//! Content blocks that are no text: images, audio, resources and links to resources.
//!
//! Addresses on the agent's own machine are not delivered: they mean nothing to a caller, and name its folders.

use serde_json::Value;

use crate::model::answer_attachment::{AnswerAttachment, ContentValue};

/// Content of a block.
pub(super) enum BlockContent {
    /// Content to deliver.
    Deliverable(AnswerAttachment),
    /// Address that is not delivered.
    LocalAddress,
    /// Block of another form.
    Unreadable,
}

/// Returns the content of a block.
pub(super) fn parse_content(block: &Value) -> BlockContent {
    let (source, value) = match block.get("type").and_then(Value::as_str) {
        Some("image" | "audio") => (block, base64_at(block, "data")),
        Some("resource") => match block.get("resource") {
            Some(resource) => {
                let text = text_at(resource, "text").map(ContentValue::Text);
                (resource, text.or_else(|| base64_at(resource, "blob")))
            }
            None => return BlockContent::Unreadable,
        },
        _ => (block, None),
    };
    match value.or_else(|| text_at(source, "uri").map(content_value_from_uri)) {
        Some(ContentValue::Url(url)) if url.is_empty() => BlockContent::Unreadable,
        Some(ContentValue::Url(url)) if is_local(&url) => BlockContent::LocalAddress,
        Some(value) => BlockContent::Deliverable(build_attachment(value, source)),
        None => BlockContent::Unreadable,
    }
}

fn base64_at(source: &Value, name: &str) -> Option<ContentValue> {
    text_at(source, name).filter(|data| !data.is_empty()).map(ContentValue::Base64)
}

/// Returns the value of an address, which may contain the bytes itself.
fn content_value_from_uri(uri: String) -> ContentValue {
    let has_bytes = uri.starts_with("data:") && uri.contains(";base64,");
    if has_bytes { ContentValue::Base64(uri) } else { ContentValue::Url(uri) }
}

/// Returns true for the address of a file, and for a path.
fn is_local(url: &str) -> bool {
    let Some((scheme, _)) = url.split_once(':') else { return true };
    let has_scheme = scheme.starts_with(|char: char| char.is_ascii_alphabetic())
        && scheme.chars().all(|char| char.is_ascii_alphanumeric() || "+-.".contains(char));
    !has_scheme || scheme.eq_ignore_ascii_case("file")
}

fn build_attachment(value: ContentValue, source: &Value) -> AnswerAttachment {
    let name = text_at(source, "name").or_else(|| text_at(source, "title")).or_else(|| {
        let uri = text_at(source, "uri").filter(|uri| uri.contains("://"))?;
        let path = uri.split(['?', '#']).next().unwrap_or_default();
        path.rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_owned)
    });
    AnswerAttachment { value, name, media_type: text_at(source, "mimeType") }
}

fn text_at(source: &Value, name: &str) -> Option<String> {
    source.get(name).and_then(Value::as_str).map(str::to_owned)
}
