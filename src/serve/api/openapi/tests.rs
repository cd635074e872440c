//! Tests of the OpenAPI document: it is current, complete and consistent.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::platform::json_schema::ParsedSchema;
use crate::serve::api::{openapi_document, operations};
use crate::wire::api::interactions::AnswerRequest;

/// Environment variable that makes the test rewrite the stored document instead of comparing it.
const REWRITE_VARIABLE: &str = "ALGONIUS_REWRITE_SNAPSHOTS";

/// Returns the value and all values within it.
fn descendants(value: &Value) -> Vec<&Value> {
    let children: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    };
    children.into_iter().flat_map(descendants).chain([value]).collect()
}

#[test]
fn the_stored_openapi_document_equals_the_generated_one() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/openapi.json");
    let generated = serde_json::to_string_pretty(&openapi_document()).expect("JSON") + "\n";
    if std::env::var_os(REWRITE_VARIABLE).is_some() {
        std::fs::write(file, &generated).expect("a file");
    }
    let stored = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        stored == generated,
        "docs/openapi.json is of other operations; {REWRITE_VARIABLE}=1 writes it anew"
    );
}

#[test]
fn every_schema_reference_resolves() {
    let document = openapi_document();
    let values = descendants(&document);
    let refs: BTreeSet<_> = values.iter().filter_map(|value| value.get("$ref")?.as_str()).collect();
    assert!(refs.len() > 50, "{refs:?}");
    for name in refs {
        let pointer = name.strip_prefix('#').expect("a place in this document");
        assert!(document.pointer(pointer).is_some(), "{name}");
    }
}

/// A second type with the same name would get a number as its suffix.
#[test]
fn every_schema_has_a_unique_name() {
    let document = openapi_document();
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    let ends_with_digit = |name: &&String| name.ends_with(|last: char| last.is_ascii_digit());
    assert_eq!(schemas.keys().find(ends_with_digit), None);
}

/// A name denotes the same schema in requests and in responses.
#[test]
fn requests_and_responses_share_one_schema_per_name() {
    let mut components = Components::new();
    for operation in operations() {
        operation_object(&operation, &mut components);
    }
    let request_schemas = components.request_schemas.take_definitions(true);
    let response_schemas = components.response_schemas.take_definitions(true);
    for (name, schema) in request_schemas {
        let other = response_schemas.get(&name).unwrap_or(&schema);
        assert_eq!(other, &schema, "{name}");
    }
}

#[test]
fn every_operation_has_an_id_and_its_path_parameters() {
    let operations = operations();
    let ids: BTreeSet<_> = operations.iter().map(|operation| operation.operation_id).collect();
    assert_eq!(ids.len(), operations.len(), "two have one name");
    for operation in &operations {
        let parameters =
            operation.path.split('/').filter_map(|word| word.strip_prefix('{')?.strip_suffix('}'));
        let names: Vec<_> =
            operation.input.path_parameters.iter().map(|parameter| parameter.name).collect();
        assert_eq!(parameters.collect::<Vec<_>>(), names, "{}", operation.path);
        assert!(
            operation.summary.ends_with('.') && !operation.operation_id.is_empty(),
            "{}",
            operation.path
        );
        assert!(!operation.responses.is_empty(), "{}", operation.path);
    }
}

/// A status of a successful response is not also the status of an error.
#[test]
fn success_and_error_statuses_do_not_overlap() {
    for operation in operations() {
        let success_statuses: Vec<_> =
            operation.responses.iter().map(|response| response.status).collect();
        let error_statuses =
            operation.errors.codes.iter().map(|code| algonius_a2a::problem::wire_codes(*code).http);
        let shared_statuses: Vec<_> =
            error_statuses.filter(|status| success_statuses.contains(status)).collect();
        assert!(shared_statuses.is_empty(), "{}: {shared_statuses:?}", operation.path);
    }
}

#[test]
fn the_schema_of_an_answer_accepts_what_the_service_reads() {
    let schema =
        ParsedSchema::parse(schemars::schema_for!(AnswerRequest).as_value()).expect("a schema");
    let mut accepted_count = 0;
    for body in [
        json!({}),
        json!({"decline": false}),
        json!({"decline": true}),
        json!({"verdict": "ask"}),
        json!({"verdict": "allow"}),
        json!({"verdict": "allow", "option": null, "decline": false}),
        json!({"verdict": "allow", "reason": "why"}),
        json!({"verdict": "allow", "option": "a"}),
        json!({"verdict": "deny", "reason": "no"}),
        json!({"text": "a", "values": {}}),
        json!({"values": {"name": "main"}, "digest": "d"}),
        json!({"reason": "alone"}),
    ] {
        let request: AnswerRequest = serde_json::from_value(body.clone()).expect("a request");
        let is_answer = request.answer_value().is_some();
        assert_eq!(schema.validate(&body.to_string()).is_ok(), is_answer, "{body}");
        accepted_count += usize::from(is_answer);
    }
    assert_eq!(accepted_count, 5);
}
