//! Links in the responses of an operation to the operations on the created item.

use serde_json::{Map, Value, json};

use crate::serve::api::endpoint::ApiEndpoint;

/// Adds links to the successful responses of an operation that creates an item: one for each operation whose path is
/// the same path followed by the id of the item.
pub(super) fn add(described: &mut Value, operation: &ApiEndpoint, all: &[ApiEndpoint]) {
    if operation.input.body.is_none() || operation.method != "POST" {
        return;
    }
    let below = format!("{}/{{", operation.path);
    let links: Map<_, _> =
        all.iter().filter(|other| other.path.starts_with(&below)).filter_map(link).collect();
    for answer in &operation.responses {
        let response = described.pointer_mut(&format!("/responses/{}", answer.status));
        if let Some(response) =
            response.and_then(Value::as_object_mut).filter(|_| !links.is_empty())
        {
            response.insert("links".to_owned(), links.clone().into());
        }
    }
}

/// Creates a link. The member of the response has the same name as the path parameter.
fn link(other: &ApiEndpoint) -> Option<(String, Value)> {
    let name = other.input.path.first()?.name;
    let link = json!({
        "operationId": other.id,
        "parameters": {name: format!("$response.body#/{name}")},
    });
    Some((other.id.to_owned(), link))
}
