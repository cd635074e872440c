//! What an operation reads beside its body: parts of its path, its query, headers.

use serde_json::{Value, json};

use super::Shapes;
use crate::serve::api::operation::Operation;

/// The parameters of an operation, in the order in which they are read.
pub(super) fn parameters(operation: &Operation, shapes: &mut Shapes) -> Vec<Value> {
    let mut all = Vec::new();
    for name in &operation.names {
        let schema = (name.shape)(&mut shapes.asked);
        all.push(json!({
            "name": name.name, "in": "path", "required": true,
            "description": name.says, "schema": schema,
        }));
    }
    for header in &operation.headers {
        let schema = (header.shape)(&mut shapes.asked);
        all.push(json!({
            "name": header.name, "in": "header", "description": header.says, "schema": schema,
        }));
    }
    for query in &operation.queries {
        let members = query(&mut shapes.asked).to_value();
        let members = members.get("properties").and_then(Value::as_object).cloned();
        all.extend(members.into_iter().flatten().map(|(name, schema)| queried(name, schema)));
    }
    all
}

/// A member of a query: it is there or it is not, and is never null.
fn queried(name: String, mut schema: Value) -> Value {
    let says = schema.as_object_mut().and_then(|schema| schema.remove("description"));
    json!({"name": name, "in": "query", "description": says, "schema": without_null(schema)})
}

/// The schema of what is never null.
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
