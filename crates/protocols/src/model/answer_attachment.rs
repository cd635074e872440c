//! Parts of an answer that are no pieces of its text.

/// Part of an answer that is no piece of its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerAttachment {
    /// Value of the part.
    pub value: ContentValue,
    /// Name of the file or resource, if reported.
    pub name: Option<String>,
    /// Media type, if reported.
    pub media_type: Option<String>,
}

/// Value of a part of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentValue {
    /// Bytes in base64, as the agent wrote them.
    Base64(String),
    /// Text of a resource.
    Text(String),
    /// Address of a resource.
    Url(String),
}
