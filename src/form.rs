//! JSON Schemas: read where the configuration gives one, and held against what is to fit them.

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

/// A schema that was read.
pub(crate) struct Form(Validator);

impl Form {
    /// Reads a schema of draft 2020-12, unless it names another. Nothing is fetched for it.
    ///
    /// # Errors
    /// A clause that says what is wrong with it.
    pub(crate) fn read(schema: &Value) -> Result<Self, String> {
        // Patterns take no longer for a text that is made to be slow.
        let options = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .with_pattern_options(PatternOptions::regex());
        options.build(schema).map(Self).map_err(|error| error.to_string())
    }

    /// Whether a text is one JSON document that fits.
    ///
    /// # Errors
    /// A clause that says which part of the schema it does not fit. Of the text there is nothing in it.
    pub(crate) fn fits(&self, text: &str) -> Result<(), String> {
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

    use super::Form;

    #[test]
    fn what_does_not_fit_is_told_by_the_place_in_the_schema() {
        let schema = json!({
            "type": "object",
            "required": ["findings"],
            "properties": {"findings": {"type": "array", "items": {"pattern": "^[a-z]+$"}}},
        });
        let form = Form::read(&schema).unwrap();
        assert_eq!(form.fits(" {\"findings\": [\"one\"]}\n"), Ok(()));
        let refusal = |text| form.fits(text).unwrap_err();
        assert_eq!(refusal("Here it is: {}"), "is no JSON document");
        assert_eq!(refusal("{}"), "does not fit its schema at `/required`");
        let told = refusal(r#"{"findings": ["SECRET"]}"#);
        assert_eq!(told, "does not fit its schema at `/properties/findings/items/pattern`");
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        assert!(Form::read(&json!({"type": "strong"})).is_err());
        assert!(Form::read(&json!({"$ref": "https://example.com/away.json"})).is_err());
    }
}
