//! Result of a tool call as text.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// Result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallResult {
    /// Structured content as JSON; without it, the texts of the content, one after the other.
    pub text: String,
    /// True if the tool reports a failure.
    pub is_error: bool,
}

impl From<CallToolResult> for ToolCallResult {
    fn from(result: CallToolResult) -> Self {
        let is_error = result.is_error == Some(true);
        let text = match result.structured_content {
            Some(structured) if !structured.is_null() => structured.to_string(),
            _ => result.content.into_iter().map(block_text).collect::<Vec<_>>().join("\n"),
        };
        Self { text, is_error }
    }
}

/// Returns the text of a part. A part that is no text is named, because the model cannot read it.
fn block_text(block: ContentBlock) -> String {
    let omitted = |description: &str| format!("[{description}: not passed on]");
    match block {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => omitted(&format!("image {}", image.mime_type)),
        ContentBlock::Audio(audio) => omitted(&format!("audio {}", audio.mime_type)),
        ContentBlock::ResourceLink(link) => format!("[link: {}]", link.uri),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => text,
            ResourceContents::BlobResourceContents { uri, .. } => omitted(&format!("file {uri}")),
            _ => omitted("resource"),
        },
        _ => omitted("content"),
    }
}
