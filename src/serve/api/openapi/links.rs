//! What can be done with what an operation has made, as links of its answers.

use serde_json::{Map, Value, json};

use crate::serve::api::operation::Operation;

/// Adds the links to the good answers of an operation that makes something: to each operation whose
/// path begins with the same path and the name of one such thing.
pub(super) fn add(described: &mut Value, operation: &Operation, all: &[Operation]) {
    if operation.body.is_none() || operation.method != "POST" {
        return;
    }
    let below = format!("{}/{{", operation.path);
    let links: Map<_, _> =
        all.iter().filter(|other| other.path.starts_with(&below)).filter_map(link).collect();
    for answer in &operation.answers {
        let told = described.pointer_mut(&format!("/responses/{}", answer.status));
        if let Some(told) = told.and_then(Value::as_object_mut).filter(|_| !links.is_empty()) {
            told.insert("links".to_owned(), links.clone().into());
        }
    }
}

/// The member of the answer has the name that the part of the path has.
fn link(other: &Operation) -> Option<(String, Value)> {
    let name = other.names.first()?.name;
    let link = json!({
        "operationId": other.id,
        "parameters": {name: format!("$response.body#/{name}")},
    });
    Some((other.id.to_owned(), link))
}
