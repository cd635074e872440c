//! Parameters of an operation: parts of its path, its query and headers.

use serde_json::{Value, json};

use super::Components;
use crate::serve::api::endpoint::ApiEndpoint;

/// Returns the parameters of an operation: path, then headers, then query.
pub(super) fn parameters(operation: &ApiEndpoint, shapes: &mut Components) -> Vec<Value> {
    let mut all = Vec::new();
    for name in &operation.input.path {
        let schema = (name.shape)(&mut shapes.requests);
        all.push(json!({
            "name": name.name, "in": "path", "required": true,
            "description": name.description, "schema": schema,
        }));
    }
    for header in &operation.input.headers {
        let schema = (header.shape)(&mut shapes.requests);
        all.push(json!({
            "name": header.name, "in": "header", "description": header.description, "schema": schema,
        }));
    }
    for query in &operation.input.queries {
        // Inline and not as a reference: OpenAPI describes each member of a query as a parameter of its own.
        let members = query(&mut shapes.requests).to_value();
        let members = members.get("properties").and_then(Value::as_object).cloned();
        all.extend(
            members.into_iter().flatten().map(|(name, schema)| query_parameter(name, schema)),
        );
    }
    all
}

/// Describes a member of a query, which is present or absent and never null.
fn query_parameter(name: String, mut schema: Value) -> Value {
    let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
    json!({"name": name, "in": "query", "description": description, "schema": without_null(schema)})
}

/// Returns the schema without the type null.
pub(super) fn without_null(mut schema: Value) -> Value {
    let Some(members) = schema.as_object_mut() else { return schema };
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|word| word != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(kinds)) = members.get_mut("anyOf") {
        kinds.retain(|kind| kind.get("type").is_none_or(|word| word != "null"));
        if let [only] = kinds.as_slice() {
            return only.clone();
        }
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    schema
}
