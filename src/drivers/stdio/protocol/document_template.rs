//! JSON documents whose texts are templates.
//!
//! A text is rendered at its place in the document, so a rendered value is always text there, whatever quotes it
//! contains.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use serde_json::Value;

use crate::platform::template::{ExecutionValues, Template};

/// Renders every text of a document; member names stay as they are.
///
/// # Errors
/// `input-rejected` if a template names a value that the request does not have.
pub(super) fn render_document(
    template: &Value,
    values: &ExecutionValues,
) -> Result<Value, Failure> {
    Ok(match template {
        Value::String(text) => Value::String(render_text(text, values)?),
        Value::Array(items) => {
            let items = items.iter().map(|item| render_document(item, values));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, item)| Ok((name.clone(), render_document(item, values)?)));
            Value::Object(members.collect::<Result<_, Failure>>()?)
        }
        other => other.clone(),
    })
}

/// Renders one text.
///
/// # Errors
/// Same as [`render_document`].
pub(super) fn render_text(text: &str, values: &ExecutionValues) -> Result<String, Failure> {
    let filled = Template::new(text).and_then(|template| template.render(values));
    filled.map_err(|_missing| {
        Failure::new(Code::InputRejected, "the message to the agent could not be rendered")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::platform::template::RequestIds;

    #[test]
    fn filled_values_stay_text() {
        let input = "\"}, \"x\": {{ uuid }}\n\u{1}\\".to_owned();
        let ids = RequestIds { context_id: "c".to_owned(), ..RequestIds::default() };
        let values = ExecutionValues { input: input.clone(), ids, ..ExecutionValues::default() };
        let template =
            json!({"a": ["{{ input }}", 1, null], "{{ input }}": {"b": "<{{ context_id }}>"}});
        let filled = render_document(&template, &values).unwrap();
        assert_eq!(filled, json!({"a": [input, 1, null], "{{ input }}": {"b": "<c>"}}));
        assert_eq!(serde_json::from_str::<Value>(&filled.to_string()).unwrap(), filled);
    }

    #[test]
    fn a_placeholder_without_a_value_is_refused() {
        let failure = render_document(&json!({"a": "{{ param.x }}"}), &ExecutionValues::default())
            .unwrap_err();
        assert_eq!(failure.code, Code::InputRejected);
    }
}
