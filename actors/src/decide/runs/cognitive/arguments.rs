//! Arguments of a call, and the schema that a tool offers for them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::model::agent::cognitive::{InputType, ToolInput, ToolSpec};

/// Checks the arguments of a call against the inputs of its tool. An MCP server checks those of its tools itself.
///
/// # Errors
/// The reason as a clause.
pub fn check_arguments(tool: &ToolSpec, arguments: &Map<String, Value>) -> Result<(), String> {
    let Some(inputs) = &tool.inputs else { return Ok(()) };
    for (name, input) in inputs {
        match arguments.get(name) {
            Some(value) if matches_type(input.input_type, value) => {}
            Some(Value::Null) | None if input.optional => {}
            Some(_) => {
                return Err(format!("`{name}` must be of the type {}", input.input_type.as_str()));
            }
            None => return Err(format!("`{name}` is needed")),
        }
    }
    let known: Vec<_> = inputs.keys().map(|name| format!("`{name}`")).collect();
    let is_unknown = |name: &&String| !inputs.contains_key(*name);
    match arguments.keys().find(is_unknown) {
        None => Ok(()),
        Some(_) if known.is_empty() => Err("the tool has no arguments".to_owned()),
        Some(_) => Err(format!("the tool has no arguments other than {}", known.join(", "))),
    }
}

/// Returns the JSON Schema of these arguments.
pub(super) fn input_schema(inputs: &BTreeMap<String, ToolInput>) -> Value {
    let mut properties = Map::new();
    for (name, input) in inputs {
        let mut property = Map::new();
        if input.input_type != InputType::Any {
            property.insert("type".to_owned(), json!(input.input_type.as_str()));
        }
        property.insert("description".to_owned(), json!(input.description));
        properties.insert(name.clone(), Value::Object(property));
    }
    let required: Vec<_> =
        inputs.iter().filter(|(_, input)| !input.optional).map(|(name, _)| name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn matches_type(input_type: InputType, value: &Value) -> bool {
    match input_type {
        InputType::String => value.is_string(),
        InputType::Integer => value.is_i64() || value.is_u64(),
        InputType::Number => value.is_number(),
        InputType::Boolean => value.is_boolean(),
        InputType::Array => value.is_array(),
        InputType::Object => value.is_object(),
        InputType::Any => !value.is_null(),
    }
}
