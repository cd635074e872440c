//! The description of the API in OpenAPI 3.1, made of the table of its operations.

mod answers;
mod asked;
mod links;

use algonius_actors::model::principal::Right;
use axum::response::Response;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::operation::Operation;
use super::table;
use crate::serve::answer::{Problem, ok};
use crate::serve::auth::Who;

/// What it says of itself.
const ABOUT: &str = "The API for programs of algonius-supervisor: agents, executions, schedules, \
    tokens and the service itself. Agents are also reached by A2A, below `/agents/{agent}/v1` and \
    by gRPC, as that standard says: https://a2a-protocol.org. Refusals are documents of RFC 9457; \
    clients tell them apart by `code`. Answers may get further members in later releases.";

/// Tells the description.
///
/// # Errors
/// `forbidden`.
pub async fn show(who: Who) -> Result<Response, Problem> {
    who.may(Right::Read, None)?;
    Ok(ok(&document()))
}

/// The description.
#[must_use]
pub fn document() -> Value {
    let mut shapes = Shapes::new();
    let mut paths = Map::new();
    let operations = table::operations();
    for operation in &operations {
        let mut described = described(operation, &mut shapes);
        links::add(&mut described, operation, &operations);
        let methods = paths.entry(operation.path).or_insert_with(|| json!({}));
        if let Some(methods) = methods.as_object_mut() {
            methods.insert(operation.method.as_str().to_lowercase(), described);
        }
    }
    let tags = table::TAGS.iter().map(|(name, says)| json!({"name": name, "description": says}));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "algonius-supervisor",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "The service that tells this."}],
        "tags": tags.collect::<Vec<_>>(),
        "externalDocs": {"url": "https://a2a-protocol.org", "description": "A2A"},
        "paths": paths,
        "components": shapes.components(),
    })
}

/// What is described once and named wherever it is used.
struct Shapes {
    /// Of what callers write.
    asked: SchemaGenerator,
    /// Of what they are told.
    told: SchemaGenerator,
    refusals: Map<String, Value>,
}

impl Shapes {
    fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        Self {
            asked: settings().for_deserialize().into_generator(),
            told: settings().for_serialize().into_generator(),
            refusals: Map::new(),
        }
    }

    fn components(mut self) -> Value {
        let mut schemas = self.asked.take_definitions(true);
        let told = self.told.take_definitions(true);
        schemas.extend(told.into_iter().map(|(name, schema)| (name, absent_or_there(schema))));
        json!({
            "schemas": schemas,
            "responses": self.refusals,
            "headers": answers::headers(),
            "securitySchemes": {"token": {
                "type": "http",
                "scheme": "bearer",
                "description": "A token of the service. Each operation names the scope that it needs.",
            }},
        })
    }
}

/// What an answer need not have is left out of it; it is never null.
fn absent_or_there(mut schema: Value) -> Value {
    let needed = schema.get("required").cloned().unwrap_or_default();
    let is_needed = |name: &str| {
        needed.as_array().is_some_and(|names| names.iter().any(|needed| needed == name))
    };
    if let Some(members) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for (_, member) in members.iter_mut().filter(|(name, _)| !is_needed(name)) {
            *member = asked::without_null(member.take());
        }
    }
    if let Some(kinds) = schema.get_mut("oneOf").and_then(Value::as_array_mut) {
        for kind in kinds {
            *kind = absent_or_there(kind.take());
        }
    }
    schema
}

/// Adds a member to an object.
fn put(object: &mut Value, name: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
}

/// One operation.
fn described(operation: &Operation, shapes: &mut Shapes) -> Value {
    let mut told = json!({
        "operationId": operation.id,
        "summary": operation.says,
        "tags": [operation.tag],
        "responses": answers::all(operation, shapes),
        "security": operation.needs.map_or_else(Vec::new, |right| {
            vec![json!({"token": [right.as_str()]})]
        }),
    });
    let parameters = asked::parameters(operation, shapes);
    if !parameters.is_empty() {
        put(&mut told, "parameters", parameters.into());
    }
    if let Some(body) = operation.body {
        let schema = body(&mut shapes.asked);
        let media = json!({"application/json": {"schema": schema}});
        put(&mut told, "requestBody", json!({"required": true, "content": media}));
    }
    told
}

#[cfg(test)]
mod tests;
