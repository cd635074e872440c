//! Minimal instance of a JSON schema, for requests with a structured answer.

use serde_json::{Value, json};

pub(crate) fn instance(schema: &Value) -> Value {
    if let Some(fixed_value) = schema.get("const").or_else(|| schema.pointer("/enum/0")) {
        return fixed_value.clone();
    }
    let pointers = ["/anyOf/0", "/oneOf/0", "/allOf/0"];
    if let Some(alternative) = pointers.iter().find_map(|pointer| schema.pointer(pointer)) {
        return instance(alternative);
    }
    let kind = schema["type"].as_str().or_else(|| schema.pointer("/type/0")?.as_str());
    match kind.unwrap_or("object").to_ascii_lowercase().as_str() {
        "object" => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            properties.map(|(name, schema)| (name.clone(), instance(schema))).collect()
        }
        "array" => json!([]),
        "boolean" => json!(true),
        "integer" | "number" => json!(1),
        "null" => Value::Null,
        _ => json!("mock"),
    }
}
