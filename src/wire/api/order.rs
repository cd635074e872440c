//! The shape of a request for an execution.

use algonius_actors::model::id::AgentId;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::wire::whole;

/// The longest that an answer waits, in seconds.
pub const LONGEST_WAIT: u64 = 3600;

/// Text without control characters.
const PLAIN: &str = r"^[^\x00-\x1f\x7f-\x9f]*$";
/// The same, and not blank.
pub(in crate::wire) const NAME: &str =
    r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$";

/// A request for an execution: `text` or `parts` says what is asked.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = one_of_both)]
pub struct ExecutionOrder {
    /// Who is asked.
    #[schemars(with = "AgentId")]
    pub agent: String,
    /// What is asked, as text.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub text: Option<String>,
    /// What is asked, in parts of A2A 1.0, instead of a text.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(schema_with = "parts")]
    pub parts: Option<Value>,
    /// Values for the agent's templates.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(schema_with = "values")]
    pub parameters: Option<Value>,
    /// A folder and variables, where the agent allows them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(schema_with = "overrides")]
    pub overrides: Option<Value>,
    /// The conversation it belongs to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(length(max = 256), regex(pattern = PLAIN))]
    pub context_id: Option<String>,
    /// The message's id: the same id is the same execution.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(length(min = 1, max = 256), regex(pattern = PLAIN))]
    pub message_id: Option<String>,
    /// The caller's own name for the request, as the header `Idempotency-Key`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(length(max = 256), regex(pattern = NAME))]
    pub idempotency_key: Option<String>,
    /// For so many seconds the answer waits for the end.
    #[serde(default, deserialize_with = "whole::number")]
    #[schemars(range(max = LONGEST_WAIT))]
    pub wait: u64,
    /// Whether it is asked only to see whether the agent works.
    #[serde(default)]
    pub probe: bool,
}

/// The caller's own name for a request, as it stands in a header.
#[derive(JsonSchema)]
#[schemars(inline)]
pub struct RequestName(
    #[schemars(length(max = 256), regex(pattern = "^[!-~]([ -~]*[!-~])?$"))] pub String,
);

/// Either says what is asked, never both.
fn one_of_both(schema: &mut Schema) {
    let nothing = json!({"type": "null"});
    schema.insert(
        "oneOf".to_owned(),
        json!([
            {"required": ["text"], "properties": {"text": {"type": "string"}, "parts": nothing}},
            {"required": ["parts"], "properties": {"parts": {"type": "array"}, "text": nothing}},
        ]),
    );
}

/// The parts of a message as that standard says, in short.
fn parts(_: &mut SchemaGenerator) -> Schema {
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
        },
    })
}

fn values(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["object", "null"],
        "additionalProperties": {"type": ["string", "number", "boolean"]},
    })
}

fn overrides(generator: &mut SchemaGenerator) -> Schema {
    let mut environment = values(generator);
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
