//! Judges answers by the description that the service itself tells.

use std::collections::BTreeSet;

use jsonschema::{Draft, Validator};
use serde_json::{Map, Value, json};

use crate::harness::client::{ServiceClient, TestResponse};

/// Knows the description, and what of it was seen.
pub(super) struct ResponseValidator {
    openapi_document: Value,
    seen_responses: BTreeSet<(String, u16)>,
}

impl ResponseValidator {
    pub(super) async fn fetch(client: &ServiceClient) -> Self {
        let document = client.get("/api/v1/openapi.json").await.json();
        Self { openapi_document: document, seen_responses: BTreeSet::new() }
    }

    /// One that knows another description.
    pub(super) fn from_document(document: Value) -> Self {
        Self { openapi_document: document, seen_responses: BTreeSet::new() }
    }

    pub(super) const fn openapi_document(&self) -> &Value {
        &self.openapi_document
    }

    /// Every operation: its method, its path, and what it is.
    pub(super) fn operations(&self) -> Vec<(String, String, Value)> {
        let paths = self.openapi_document["paths"].as_object().unwrap().iter();
        paths
            .flat_map(|(path, methods)| {
                methods.as_object().unwrap().iter().map(move |(method, operation)| {
                    (method.to_uppercase(), path.clone(), operation.clone())
                })
            })
            .collect()
    }

    /// Asserts that an answer is as it is described, and records it.
    pub(super) fn assert_documented_and_record(
        &mut self,
        method_and_path: &str,
        answer: &TestResponse,
    ) {
        let faults = self.response_faults(method_and_path, answer);
        assert!(faults.is_empty(), "{method_and_path} answers {answer:?}:\n{faults:#?}");
        self.seen_responses.insert((method_and_path.to_owned(), answer.status));
    }

    /// What of an answer is not as it is described.
    pub(super) fn response_faults(
        &self,
        method_and_path: &str,
        answer: &TestResponse,
    ) -> Vec<String> {
        let (method, path) = method_and_path.split_once(' ').unwrap();
        let operation = &self.openapi_document["paths"][path][method.to_lowercase()];
        let documented_response =
            self.resolve_ref(&operation["responses"][answer.status.to_string()]);
        if documented_response.is_null() {
            return vec![format!("{} is not described", answer.status)];
        }
        let names = documented_response["headers"].as_object().unwrap().keys();
        let missing_headers = names.filter(|name| answer.header(&name.to_lowercase()).is_none());
        let mut faults: Vec<_> = missing_headers.map(|name| format!("no header {name}")).collect();
        let media_type = answer.header("content-type");
        match (media_type, documented_response["content"].as_object()) {
            (None, None) if answer.body.is_empty() => {}
            (Some(media), Some(contents)) if contents.contains_key(media) => {
                faults.extend(self.body_faults(&contents[media], &answer.body));
            }
            (media, contents) => faults.push(format!("{media:?} is none of {contents:?}")),
        }
        faults
    }

    fn body_faults(&self, content: &Value, body: &str) -> Vec<String> {
        let schemas_by_kind = &content["x-documents"];
        if schemas_by_kind.is_null() {
            let text = || Value::String(body.to_owned());
            let document = serde_json::from_str(body).unwrap_or_else(|_| text());
            return self.document_faults(&content["schema"], &document);
        }
        parse_documents(body)
            .into_iter()
            .flat_map(|(kind, document)| match &schemas_by_kind[&kind] {
                Value::Null => vec![format!("no `{kind}` is described")],
                schema => self.document_faults(schema, &document),
            })
            .collect()
    }

    fn document_faults(&self, schema: &Value, document: &Value) -> Vec<String> {
        let validator = self.strict_validator(schema);
        let faults = validator
            .iter_errors(document)
            .map(|error| format!("{}: {error}", error.instance_path()));
        faults.collect()
    }

    /// A schema that lets nothing in that it does not name, anywhere within.
    fn strict_validator(&self, schema: &Value) -> Validator {
        let open_schemas = self.openapi_document["components"]["schemas"].clone();
        let mut root = close_schema(schema.clone());
        root["components"] = json!({"schemas": close_schemas(&open_schemas)});
        root["open"] = open_schemas;
        let options = jsonschema::options().with_draft(Draft::Draft202012);
        options.should_validate_formats(true).build(&root).unwrap()
    }

    fn resolve_ref<'v>(&'v self, value: &'v Value) -> &'v Value {
        let pointer = value["$ref"].as_str().and_then(|name| name.strip_prefix('#'));
        pointer.map_or(value, |pointer| self.openapi_document.pointer(pointer).unwrap())
    }

    /// The operations of which no good answer was seen.
    pub(super) fn operations_without_success(&self) -> Vec<String> {
        let lines =
            self.operations().into_iter().map(|(method, path, _)| format!("{method} {path}"));
        let has_succeeded = |line: &String| {
            self.seen_responses
                .iter()
                .any(|(seen, status)| seen == line && (200..300).contains(status))
        };
        lines.filter(|line| !has_succeeded(line)).collect()
    }
}

/// The documents of a stream of events or of lines, by their kinds.
fn parse_documents(body: &str) -> Vec<(String, Value)> {
    let mut kind = "line".to_owned();
    let mut documents = Vec::new();
    for line in body.lines() {
        if let Some(name) = line.strip_prefix("event: ") {
            name.clone_into(&mut kind);
        } else if let Some(data) = line.strip_prefix("data: ").or(Some(line)) {
            documents
                .extend(serde_json::from_str(data).ok().map(|document| (kind.clone(), document)));
        }
    }
    documents
}

fn close_schemas(schemas: &Value) -> Value {
    let all = schemas.as_object().unwrap().iter();
    all.map(|(name, schema)| (name.clone(), close_schema(schema.clone())))
        .collect::<Map<_, _>>()
        .into()
}

/// A schema, and all within, that takes no further members. What builds on another schema is closed
/// around that, which is left open therefore.
fn close_schema(mut schema: Value) -> Value {
    match &mut schema {
        Value::Array(items) => items.iter_mut().for_each(|item| *item = close_schema(item.take())),
        Value::Object(members) => {
            let has_members = members.contains_key("properties") || members.contains_key("allOf");
            let is_open = !members.contains_key("additionalProperties");
            for member in members.values_mut() {
                *member = close_schema(member.take());
            }
            if let Some(Value::String(name)) = members.get_mut("$ref").filter(|_| has_members) {
                *name = name.replace("#/components/schemas/", "#/open/");
            }
            if has_members && is_open && members.get("type").is_none_or(|it| it == "object") {
                members.insert("unevaluatedProperties".to_owned(), Value::Bool(false));
            }
        }
        _ => {}
    }
    schema
}
