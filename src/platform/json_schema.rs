//! JSON Schemas: parsing of configured schemas, and validation against them.

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

/// Parsed schema.
pub(crate) struct ParsedSchema(Validator);

impl ParsedSchema {
    /// Parses a schema of draft 2020-12, unless it names another. Nothing is fetched for it.
    ///
    /// # Errors
    /// A clause that describes the fault.
    pub(crate) fn parse(schema: &Value) -> Result<Self, String> {
        // The pattern engine is linear in the text, also for a text that is made to be slow.
        let options = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .with_pattern_options(PatternOptions::regex());
        options.build(schema).map(Self).map_err(|error| error.to_string())
    }

    /// Checks that a text is one JSON document that fits the schema.
    ///
    /// # Errors
    /// A clause that names the violated part of the schema. It contains nothing of the text.
    pub(crate) fn validate(&self, text: &str) -> Result<(), String> {
        let document: Value = serde_json::from_str(text.trim())
            .map_err(|_unread| "is no JSON document".to_owned())?;
        self.0
            .validate(&document)
            .map_err(|error| format!("does not fit its schema at `{}`", error.schema_path()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ParsedSchema;

    #[test]
    fn a_schema_violation_is_reported_by_its_schema_path() {
        let schema = json!({
            "type": "object",
            "required": ["findings"],
            "properties": {"findings": {"type": "array", "items": {"pattern": "^[a-z]+$"}}},
        });
        let schema_check = ParsedSchema::parse(&schema).unwrap();
        assert_eq!(schema_check.validate(" {\"findings\": [\"one\"]}\n"), Ok(()));
        let refusal = |text| schema_check.validate(text).unwrap_err();
        assert_eq!(refusal("Here it is: {}"), "is no JSON document");
        assert_eq!(refusal("{}"), "does not fit its schema at `/required`");
        let message = refusal(r#"{"findings": ["SECRET"]}"#);
        assert_eq!(message, "does not fit its schema at `/properties/findings/items/pattern`");
    }

    #[test]
    fn invalid_schemas_are_refused() {
        assert!(ParsedSchema::parse(&json!({"type": "strong"})).is_err());
        assert!(ParsedSchema::parse(&json!({"$ref": "https://example.com/away.json"})).is_err());
    }
}
