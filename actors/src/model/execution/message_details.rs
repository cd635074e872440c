//! Fields of a message beside its parts: the agent receives them, and the service does not use them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::content::StoredPart;

/// Metadata and references of one message, and of the request that carries it. The ledger stores them in clear only if
/// redaction would not change them.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct MessageDetails {
    /// Metadata of the message, without the keys that the service reads.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Metadata of the parts that have some, in the order of the parts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub part_metadata: Vec<PartMetadata>,
    /// URIs of the extensions that the message names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// Ids of the tasks to which the message refers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reference_tasks: Vec<String>,
    /// Fields of the request.
    #[serde(skip_serializing_if = "RequestDetails::is_empty")]
    pub request: RequestDetails,
}

/// Metadata of one part of a message.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartMetadata {
    /// Index of the part, from 0.
    pub part: usize,
    /// Metadata of the part.
    pub metadata: Map<String, Value>,
}

/// Fields of a request beside its message. A repeated message may have others.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RequestDetails {
    /// Metadata of the request.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Media types that the caller can read; an empty list allows all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accepted_output_modes: Vec<String>,
    /// URIs of the extensions that the caller requests, without those of the service.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requested_extensions: Vec<String>,
}

/// Content of a caller's message without its text.
#[derive(Debug, Clone, Default)]
pub struct StoredContent {
    /// Location of each part in the text.
    pub parts: Vec<StoredPart>,
    /// Metadata and references of the message, unless redaction would change them.
    pub details: Option<Box<MessageDetails>>,
}

impl MessageDetails {
    /// Returns the metadata of the part with this index.
    #[must_use]
    pub fn metadata_of_part(&self, index: usize) -> Option<&Map<String, Value>> {
        self.part_metadata.iter().find(|entry| entry.part == index).map(|entry| &entry.metadata)
    }

    /// Returns true if the message has only parts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns all texts of the details: keys, values and list entries.
    #[must_use]
    pub fn all_strings(&self) -> Vec<&str> {
        let RequestDetails { metadata, accepted_output_modes, requested_extensions } =
            &self.request;
        let parts = self.part_metadata.iter().map(|entry| &entry.metadata);
        let objects = [&self.metadata, metadata].into_iter().chain(parts);
        let lists =
            [&self.extensions, &self.reference_tasks, accepted_output_modes, requested_extensions];
        let mut texts: Vec<_> = lists.into_iter().flatten().map(String::as_str).collect();
        objects.for_each(|object| collect_object_strings(object, &mut texts));
        texts
    }

    /// Returns the details of the message alone, without those of the request.
    #[must_use]
    pub fn without_request(&self) -> Self {
        Self { request: RequestDetails::default(), ..self.clone() }
    }
}

impl RequestDetails {
    /// Returns true if the request has only a message.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn collect_object_strings<'v>(object: &'v Map<String, Value>, texts: &mut Vec<&'v str>) {
    for (key, value) in object {
        texts.push(key);
        collect_strings(value, texts);
    }
}

/// Adds the texts of a value. The reader of JSON bounds its depth.
fn collect_strings<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect_strings(item, texts)),
        Value::Object(object) => collect_object_strings(object, texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns details as JSON, or an empty text for empty ones. Equal details have one text, because the keys of objects
/// are sorted.
#[must_use]
pub fn details_to_json<T: Serialize + Default + PartialEq>(details: &T) -> String {
    if *details == T::default() {
        return String::new();
    }
    serde_json::to_string(details).unwrap_or_default() // Maps with texts or numbers as keys always have a JSON form.
}

impl fmt::Debug for MessageDetails {
    /// Writes sizes only: metadata may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageDetails({} bytes)", details_to_json(self).len())
    }
}

impl fmt::Debug for PartMetadata {
    /// Writes the index only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PartMetadata({})", self.part)
    }
}

impl fmt::Debug for RequestDetails {
    /// Writes sizes only, like the details of messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestDetails({} bytes)", details_to_json(self).len())
    }
}
