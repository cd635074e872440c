//! Parameters of an operation: parts of its path, its query and headers.

use serde_json::{Value, json};

use super::Components;
use crate::serve::api::endpoint::ApiEndpoint;

/// Returns the parameters of an operation: path, then headers, then query.
pub(super) fn parameters(operation: &ApiEndpoint, components: &mut Components) -> Vec<Value> {
    let mut parameters = Vec::new();
    for parameter in &operation.input.path_parameters {
        let schema = (parameter.schema)(&mut components.request_schemas);
        parameters.push(json!({
            "name": parameter.name, "in": "path", "required": true,
            "description": parameter.description, "schema": schema,
        }));
    }
    for header in &operation.input.header_parameters {
        let schema = (header.schema)(&mut components.request_schemas);
        parameters.push(json!({
            "name": header.name, "in": "header", "description": header.description, "schema": schema,
        }));
    }
    for schema_fn in &operation.input.query_schemas {
        // Inline and not as a reference: OpenAPI describes each member of a query as a parameter of its own.
        let members = schema_fn(&mut components.request_schemas).to_value();
        let members = members.get("properties").and_then(Value::as_object).cloned();
        parameters.extend(
            members.into_iter().flatten().map(|(name, schema)| query_parameter(name, schema)),
        );
    }
    parameters
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
        types.retain(|value| value != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(variants)) = members.get_mut("anyOf") {
        variants.retain(|variant| variant.get("type").is_none_or(|value| value != "null"));
        if let [only] = variants.as_slice() {
            return only.clone();
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    schema
}
