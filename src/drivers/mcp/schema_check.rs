//! Check of a schema of a server: providers of models refuse requests with some schemas, and such a refusal ends the
//! run.

use serde_json::{Map, Value};

/// Greatest depth of a schema.
const MAX_DEPTH: usize = 16;

/// Greatest length of the name of an argument in bytes.
const MAX_NAME_BYTES: usize = 64;

/// Keys that providers refuse at the top of a schema.
const REFUSED_TOP_KEYS: [&str; 6] = ["$ref", "allOf", "anyOf", "enum", "not", "oneOf"];

/// Keys whose value is a schema.
const SCHEMA_KEYS: [&str; 11] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keys whose value is a list of schemas.
const SCHEMA_LIST_KEYS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];

/// Keys whose value has a schema for each name.
const SCHEMA_MAP_KEYS: [&str; 5] =
    ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// Keys whose value is a number.
const NUMBER_KEYS: [&str; 5] =
    ["exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"];

/// Keys whose value is a number of characters, items or properties.
const COUNT_KEYS: [&str; 6] =
    ["maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties"];

/// Completes lists without a schema of their items, which some providers refuse.
pub(super) fn add_missing_item_schemas(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(add_missing_item_schemas),
        Value::Object(members) => {
            members.values_mut().for_each(add_missing_item_schemas);
            let is_list = match members.get("type") {
                Some(Value::Array(names)) => names.iter().any(|name| name == "array"),
                name => name.is_some_and(|name| name == "array"),
            };
            if is_list && !members.contains_key("items") && !members.contains_key("prefixItems") {
                members.insert("items".to_owned(), Value::Object(Map::new()));
            }
        }
        _ => {}
    }
}

/// Returns true for a schema of an object that a provider of models accepts.
pub(super) fn is_usable(schema: &Value) -> bool {
    let Value::Object(members) = schema else { return false };
    members.get("type").is_some_and(|it| it == "object")
        && !REFUSED_TOP_KEYS.iter().any(|key| members.contains_key(*key))
        && has_valid_argument_names(members)
        && defines_required_arguments(members)
        && is_valid_subschema(schema, schema, 0)
}

fn has_valid_argument_names(schema: &Map<String, Value>) -> bool {
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return !schema.contains_key("properties");
    };
    let is_name = |name: &String| {
        let is_permitted = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_permitted)
    };
    properties.keys().all(is_name)
}

/// Returns true if all required arguments have a schema.
fn defines_required_arguments(schema: &Map<String, Value>) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .all(|name| properties.is_some_and(|properties| properties.contains_key(name)))
}

/// Returns true for a well-formed part of the schema `root`.
fn is_valid_subschema(part: &Value, root: &Value, depth: usize) -> bool {
    let members = match part {
        Value::Bool(_) => return depth > 0,
        Value::Object(members) if depth < MAX_DEPTH => members,
        _ => return false,
    };
    let is_valid_part = |value: &Value| is_valid_subschema(value, root, depth + 1);
    members.iter().all(|(key, value)| match key.as_str() {
        "$ref" => value.as_str().is_some_and(|reference| is_local_reference(reference, root)),
        "$dynamicRef" | "$recursiveRef" => false,
        "type" => is_valid_type(value),
        "required" => value.as_array().is_some_and(|names| names.iter().all(Value::is_string)),
        "enum" => value.as_array().is_some_and(|values| !values.is_empty()),
        "uniqueItems" => value.is_boolean(),
        key if NUMBER_KEYS.contains(&key) => value.is_number(),
        key if COUNT_KEYS.contains(&key) => value.is_u64(),
        "description" | "title" | "format" | "pattern" => value.is_string(),
        key if SCHEMA_KEYS.contains(&key) => is_valid_part(value),
        key if SCHEMA_LIST_KEYS.contains(&key) => value
            .as_array()
            .is_some_and(|parts| !parts.is_empty() && parts.iter().all(is_valid_part)),
        key if SCHEMA_MAP_KEYS.contains(&key) => {
            value.as_object().is_some_and(|parts| parts.values().all(is_valid_part))
        }
        _ => true,
    })
}

/// Returns true for a reference to a part of the same document. One to the whole document would have no end.
fn is_local_reference(reference: &str, root: &Value) -> bool {
    let pointer = reference.strip_prefix('#').filter(|pointer| pointer.starts_with('/'));
    pointer.and_then(|pointer| root.pointer(pointer)).is_some_and(Value::is_object)
}

fn is_valid_type(value: &Value) -> bool {
    let is_type_name = |name: &Value| {
        let names = ["array", "boolean", "integer", "null", "number", "object", "string"];
        name.as_str().is_some_and(|name| names.contains(&name))
    };
    match value {
        Value::Array(names) => !names.is_empty() && names.iter().all(is_type_name),
        name => is_type_name(name),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_of_real_servers_are_usable() {
        let nested = json!({
            "type": "array",
            "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        });
        for schema in [
            json!({"type": "object"}),
            json!({"type": "object", "properties": {}, "additionalProperties": false}),
            json!({"type": "object", "properties": {"a": nested}, "required": ["a"], "title": "X"}),
            json!({"type": "object", "$schema": "x", "properties": {"a.b-c": {"type": ["string", "null"]}}}),
            json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/b"}]}},
                "$defs": {"b": {"enum": [1, 2]}}}),
        ] {
            assert!(is_usable(&schema), "{schema}");
        }
    }

    #[test]
    fn a_list_without_a_schema_of_its_items_gets_one() {
        let mut schema = json!({"properties": {"a": {"type": "array"}, "b": {"type": ["array", "null"]},
            "c": {"type": "array", "items": {"type": "string"}}}});
        add_missing_item_schemas(&mut schema);
        let properties = &schema["properties"];
        assert_eq!(
            (&properties["a"]["items"], &properties["b"]["items"]),
            (&json!({}), &json!({}))
        );
        assert_eq!(properties["c"]["items"], json!({"type": "string"}));
    }

    #[test]
    fn a_schema_that_a_provider_refuses_is_not_usable() {
        let property = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
        let deep = (0..20).fold(json!({}), |inner, _| json!({"items": inner}));
        for schema in [
            json!([]),
            json!({}),
            json!({"type": "string"}),
            json!({"type": "object", "properties": []}),
            json!({"type": "object", "properties": {"a b": {}}}),
            json!({"type": "object", "properties": {"": {}}}),
            json!({"type": "object", "required": "a"}),
            json!({"type": "object", "anyOf": [{}]}),
            json!({"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {}}}),
            property(json!("string")),
            property(json!({"type": "text"})),
            json!({"type": "object", "required": ["a"]}),
            json!({"type": "object", "properties": {"b": {}}, "required": ["a"]}),
            property(json!({"enum": 1})),
            property(json!({"enum": []})),
            property(json!({"exclusiveMinimum": true})),
            property(json!({"maxLength": -1})),
            property(json!({"uniqueItems": 1})),
            property(json!({"propertyNames": {"$ref": "https://x.org/schema"}})),
            property(json!({"anyOf": []})),
            property(json!({"description": {}})),
            property(json!({"$ref": "#"})),
            property(json!({"$ref": "#/$defs/none"})),
            property(json!({"$ref": "https://x.org/schema"})),
            property(json!({"$dynamicRef": "#a"})),
            property(deep),
        ] {
            assert!(!is_usable(&schema), "{schema}");
        }
    }
}
