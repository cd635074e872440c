//! Links in the responses of an operation to the operations on the created item.

use serde_json::{Map, Value, json};

use crate::serve::api::endpoint::ApiEndpoint;

/// Adds links to the successful responses of an operation that creates an item: one for each operation whose path is
/// the same path followed by the id of the item.
pub(super) fn add_links(
    operation_json: &mut Value,
    operation: &ApiEndpoint,
    operations: &[ApiEndpoint],
) {
    if operation.input.body_schema.is_none() || operation.method != "POST" {
        return;
    }
    let path_prefix = format!("{}/{{", operation.path);
    let links: Map<_, _> = operations
        .iter()
        .filter(|other| other.path.starts_with(&path_prefix))
        .filter_map(link_to)
        .collect();
    for endpoint_response in &operation.responses {
        let response =
            operation_json.pointer_mut(&format!("/responses/{}", endpoint_response.status));
        if let Some(response) =
            response.and_then(Value::as_object_mut).filter(|_| !links.is_empty())
        {
            response.insert("links".to_owned(), links.clone().into());
        }
    }
}

/// Creates a link. The member of the response has the same name as the path parameter.
fn link_to(endpoint: &ApiEndpoint) -> Option<(String, Value)> {
    let name = endpoint.input.path_parameters.first()?.name;
    let link = json!({
        "operationId": endpoint.operation_id,
        "parameters": {name: format!("$response.body#/{name}")},
    });
    Some((endpoint.operation_id.to_owned(), link))
}
