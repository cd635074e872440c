//! OpenAPI 3.1 document of the API, generated from the table of its operations.

mod links;
mod requests;
mod responses;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::endpoint::ApiEndpoint;

/// Description of the API in the document.
const API_DESCRIPTION: &str = "The API for programs of algonius-supervisor: agents, executions, schedules, \
    tokens and the service itself. Agents are also available over A2A, below \
    `/agents/{agent}/v1` and over gRPC: https://a2a-protocol.org. Errors are documents of RFC 9457; \
    clients distinguish them by `code`. Responses may get further members in later releases.";

/// Generates the document of these operations, with the description of each tag.
pub(super) fn generate_document(operations: &[ApiEndpoint], tags: &[(&str, &str)]) -> Value {
    let mut components = Components::new();
    let mut paths = Map::new();
    for operation in operations {
        let mut operation_json = operation_object(operation, &mut components);
        links::add_links(&mut operation_json, operation, operations);
        let methods = paths.entry(operation.path).or_insert_with(|| json!({}));
        if let Some(methods) = methods.as_object_mut() {
            methods.insert(operation.method.as_str().to_lowercase(), operation_json);
        }
    }
    let tags = tags.iter().map(|(name, text)| json!({"name": name, "description": text}));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "algonius-supervisor",
            "version": env!("CARGO_PKG_VERSION"),
            "description": API_DESCRIPTION,
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "The service that returned this document."}],
        "tags": tags.collect::<Vec<_>>(),
        "externalDocs": {"url": "https://a2a-protocol.org", "description": "A2A"},
        "paths": paths,
        "components": components.into_value(),
    })
}

/// Shared components of the document.
struct Components {
    /// Schemas of request bodies and parameters.
    request_schemas: SchemaGenerator,
    /// Schemas of responses.
    response_schemas: SchemaGenerator,
    error_responses: Map<String, Value>,
}

impl Components {
    fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                // OpenAPI 3.1 states the dialect once for the whole document.
                settings.meta_schema = None;
            })
        };
        Self {
            request_schemas: settings().for_deserialize().into_generator(),
            response_schemas: settings().for_serialize().into_generator(),
            error_responses: Map::new(),
        }
    }

    fn into_value(mut self) -> Value {
        let mut schemas = self.request_schemas.take_definitions(true);
        let response_schemas = self.response_schemas.take_definitions(true);
        // A test checks that a name denotes one schema in both directions, so neither hides another.
        schemas.extend(
            response_schemas
                .into_iter()
                .map(|(name, schema)| (name, without_optional_nulls(schema))),
        );
        json!({
            "schemas": schemas,
            "responses": self.error_responses,
            "headers": responses::header_components(),
            "securitySchemes": {"token": {
                "type": "http",
                "scheme": "bearer",
                "description": "A token of the service. Each operation names the scope that it needs.",
            }},
        })
    }
}

/// Removes null from the schemas of optional members: a response omits such a member and never sends null.
fn without_optional_nulls(mut schema: Value) -> Value {
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required = |name: &str| {
        required
            .as_array()
            .is_some_and(|names| names.iter().any(|required_name| required_name == name))
    };
    if let Some(members) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for (_, member) in members.iter_mut().filter(|(name, _)| !is_required(name)) {
            *member = requests::without_null(member.take());
        }
    }
    if let Some(variants) = schema.get_mut("oneOf").and_then(Value::as_array_mut) {
        for variant in variants {
            *variant = without_optional_nulls(variant.take());
        }
    }
    schema
}

/// Adds a member to an object.
fn insert_member(object: &mut Value, name: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
}

/// Generates the description of one operation.
fn operation_object(operation: &ApiEndpoint, components: &mut Components) -> Value {
    let mut object = json!({
        "operationId": operation.operation_id,
        "summary": operation.summary,
        "tags": [operation.tag],
        "responses": responses::response_objects(operation, components),
        "security": operation.required_right.map_or_else(Vec::new, |right| {
            vec![json!({"token": [right.as_str()]})]
        }),
    });
    let parameters = requests::parameters(operation, components);
    if !parameters.is_empty() {
        insert_member(&mut object, "parameters", parameters.into());
    }
    if let Some(schema_fn) = operation.input.body_schema {
        let schema = schema_fn(&mut components.request_schemas);
        let media = json!({"application/json": {"schema": schema}});
        insert_member(&mut object, "requestBody", json!({"required": true, "content": media}));
    }
    object
}

#[cfg(test)]
mod tests;
