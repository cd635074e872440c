//! JSON whose texts are templates.
//!
//! A text is filled in within its place in the document, so nothing that is filled in can be anything
//! but text there, whatever quotes it holds.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use serde_json::Value;

use crate::template::{Template, Values};

/// Fills in every text of a document; names of members stay as they are.
///
/// # Errors
/// `input-rejected`, when a template names what the request does not give.
pub(super) fn fill(template: &Value, values: &Values) -> Result<Value, Failure> {
    Ok(match template {
        Value::String(text) => Value::String(fill_text(text, values)?),
        Value::Array(items) => {
            let items = items.iter().map(|item| fill(item, values));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(members) => {
            let members =
                members.iter().map(|(name, item)| Ok((name.clone(), fill(item, values)?)));
            Value::Object(members.collect::<Result<_, Failure>>()?)
        }
        other => other.clone(),
    })
}

/// Fills in one text.
///
/// # Errors
/// As [`fill`].
pub(super) fn fill_text(text: &str, values: &Values) -> Result<String, Failure> {
    let filled = Template::new(text).and_then(|template| template.render(values));
    filled.map_err(|_missing| {
        Failure::new(Code::InputRejected, "what is said to the agent could not be filled in")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_filled_in_stays_text_where_it_stands() {
        let input = "\"}, \"x\": {{ uuid }}\n\u{1}\\".to_owned();
        let values =
            Values { input: input.clone(), context_id: "c".to_owned(), ..Values::default() };
        let template =
            json!({"a": ["{{ input }}", 1, null], "{{ input }}": {"b": "<{{ context_id }}>"}});
        let filled = fill(&template, &values).unwrap();
        assert_eq!(filled, json!({"a": [input, 1, null], "{{ input }}": {"b": "<c>"}}));
        assert_eq!(serde_json::from_str::<Value>(&filled.to_string()).unwrap(), filled);
    }

    #[test]
    fn what_has_no_value_is_refused() {
        let failure = fill(&json!({"a": "{{ param.x }}"}), &Values::default()).unwrap_err();
        assert_eq!(failure.code, Code::InputRejected);
    }
}
