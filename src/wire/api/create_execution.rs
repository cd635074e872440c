//! Shape of a request for an execution.

use algonius_actors::model::id::AgentId;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::wire::{NON_BLANK_PATTERN, integer};

/// Maximum time for which a response waits, in seconds.
pub const MAX_WAIT_SECONDS: u64 = 3600;

/// Pattern of text without control characters.
const PLAIN_TEXT_PATTERN: &str = r"^[^\x00-\x1f\x7f-\x9f]*$";

/// Request for an execution, with either `text` or `parts` as its content.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = exactly_one_content)]
pub struct ExecutionRequest {
    /// Id of the agent.
    #[schemars(with = "AgentId")]
    pub agent: String,
    /// Content of the request as text.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub text: Option<String>,
    /// Content of the request as parts of A2A 1.0, instead of `text`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(schema_with = "parts_schema")]
    pub parts: Option<Value>,
    /// Values for the agent's templates.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(schema_with = "values_schema")]
    pub parameters: Option<Value>,
    /// Working directory and environment variables, if the agent allows the caller to set them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(schema_with = "overrides_schema")]
    pub overrides: Option<Value>,
    /// Id of the conversation to which the request belongs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(length(max = 256), regex(pattern = PLAIN_TEXT_PATTERN))]
    pub context_id: Option<String>,
    /// Id of the message: a second request with the same id returns the same execution.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(length(min = 1, max = 256), regex(pattern = PLAIN_TEXT_PATTERN))]
    pub message_id: Option<String>,
    /// Idempotency key of the request, as in the header `Idempotency-Key`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(length(max = 256), regex(pattern = NON_BLANK_PATTERN))]
    pub idempotency_key: Option<String>,
    /// Maximum time for which the response waits for the end of the execution, in seconds.
    #[serde(default, deserialize_with = "integer::non_null")]
    #[schemars(range(max = MAX_WAIT_SECONDS))]
    pub wait: u64,
    /// True if the request only checks whether the agent works.
    #[serde(default)]
    pub probe: bool,
}

/// Idempotency key of a request in the form of a header value.
#[derive(JsonSchema)]
#[schemars(inline)]
#[schemars(rename = "RequestName")]
pub struct IdempotencyKeyHeader(
    #[schemars(length(max = 256), regex(pattern = "^[!-~]([ -~]*[!-~])?$"))] pub String,
);

/// Requires exactly one of `text` and `parts`.
fn exactly_one_content(schema: &mut Schema) {
    // A member that is null counts as absent, which `required` alone cannot express.
    let null_type = json!({"type": "null"});
    schema.insert(
        "oneOf".to_owned(),
        json!([
            {"required": ["text"], "properties": {"text": {"type": "string"}, "parts": null_type}},
            {"required": ["parts"], "properties": {"parts": {"type": "array"}, "text": null_type}},
        ]),
    );
}

/// Members of a part.
pub const PART_MEMBERS: [&str; 7] =
    ["text", "raw", "url", "data", "filename", "mediaType", "metadata"];

/// Schema of the parts of a message, abridged from A2A 1.0.
fn parts_schema(_: &mut SchemaGenerator) -> Schema {
    let text = json!({"type": "string"});
    json_schema!({
        "type": ["array", "null"],
        "minItems": 1,
        "maxItems": 1000,
        "externalDocs": {"url": "https://a2a-protocol.org", "description": "A2A 1.0: Part"},
        "items": {
            "type": "object",
            "properties": {
                "text": text,
                "data": {},
                "raw": {"type": "string", "contentEncoding": "base64"},
                "url": text,
                "filename": text,
                "mediaType": text,
                "metadata": {"type": "object"},
            },
            "oneOf": [
                {"required": ["text"]},
                {"required": ["data"]},
                {"required": ["raw"]},
                {"required": ["url"]},
            ],
            "additionalProperties": false,
        },
    })
}

fn values_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["object", "null"],
        "additionalProperties": {"type": ["string", "number", "boolean"]},
    })
}

fn overrides_schema(generator: &mut SchemaGenerator) -> Schema {
    let mut environment = values_schema(generator);
    // Within the overrides the member is present or absent, never null.
    environment.insert("type".to_owned(), "object".into());
    json_schema!({
        "type": ["object", "null"],
        "properties": {
            "workingDirectory": {"type": "string", "description": "The folder to start in."},
            "environment": environment,
        },
        "additionalProperties": false,
    })
}
