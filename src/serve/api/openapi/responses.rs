//! Responses of an operation: successful ones, and errors from the table of codes.

use std::collections::{BTreeMap, BTreeSet};

use algonius_a2a::problem::{self, Problem};
use algonius_actors::model::code::Code;
use serde_json::{Map, Value, json};

use super::{Components, insert_member};
use crate::serve::api::endpoint::{
    ApiEndpoint, BodyContent, ContentSchema, EndpointResponse, schema_fn,
};

/// Header that every response has.
const REQUEST_ID_HEADER: (&str, &str) = ("X-Request-Id", "RequestId");
/// Header with the seconds to wait before the next request.
const RETRY_AFTER_HEADER: (&str, &str) = ("Retry-After", "RetryAfter");
/// Header with the authentication scheme.
const AUTHENTICATE_HEADER: (&str, &str) = ("WWW-Authenticate", "Authenticate");

/// Returns the descriptions of the headers by name.
pub(super) fn header_components() -> Value {
    let header = |description: &str, schema: Value| json!({"description": description, "required": true, "schema": schema});
    json!({
        REQUEST_ID_HEADER.1: header(
            "The id of the request, also in the log: the caller's own where it sent one.",
            json!({"type": "string"}),
        ),
        RETRY_AFTER_HEADER.1: header(
            "Seconds after which the request may be sent again.",
            json!({"type": "integer", "minimum": 1}),
        ),
        AUTHENTICATE_HEADER.1: header("How to authenticate.", json!({"type": "string", "const": "Bearer"})),
    })
}

/// Returns all responses of an operation by status.
pub(super) fn response_objects(operation: &ApiEndpoint, components: &mut Components) -> Value {
    let mut objects = Map::new();
    for endpoint_response in &operation.responses {
        objects.insert(
            endpoint_response.status.to_string(),
            success_response(endpoint_response, components),
        );
    }
    for (status, codes) in group_by_status(&operation.errors.codes) {
        // A status has one response, so the code with additional members describes all codes of its status.
        let extended_body = operation
            .errors
            .body_schemas_by_code
            .iter()
            .find(|(code, _)| codes.contains(code.as_str()));
        let response = match extended_body {
            Some((_, schema_fn)) => {
                let schema = schema_fn(&mut components.response_schemas).to_value();
                error_response(status, &codes, schema)
            }
            None => shared_error_response(status, &codes, components),
        };
        objects.insert(status.to_string(), response);
    }
    objects.into()
}

fn success_response(endpoint_response: &EndpointResponse, components: &mut Components) -> Value {
    let mut response = json!({"description": endpoint_response.description, "headers": header_references(&[REQUEST_ID_HEADER])});
    let contents = endpoint_response.contents.iter();
    let contents: Map<_, _> = contents
        .map(|content| (content.media_type.to_owned(), content_object(content, components)))
        .collect();
    if !contents.is_empty() {
        insert_member(&mut response, "content", contents.into());
    }
    response
}

/// Generates the content of a response. Lines and events are separate documents, which OpenAPI 3.1 cannot describe
/// within a body.
fn content_object(content: &BodyContent, components: &mut Components) -> Value {
    match &content.schema {
        ContentSchema::Document(schema_fn) => {
            json!({"schema": schema_fn(&mut components.response_schemas)})
        }
        ContentSchema::Text => json!({"schema": {"type": "string"}}),
        ContentSchema::DocumentSequence(kinds) => {
            let kinds = kinds.iter().map(|(kind, schema_fn)| {
                ((*kind).to_owned(), schema_fn(&mut components.response_schemas).to_value())
            });
            let kinds: Map<_, _> = kinds.collect();
            json!({"schema": {"type": "string"}, "x-documents": kinds})
        }
    }
}

/// Groups the codes by their HTTP status.
fn group_by_status(codes: &[Code]) -> BTreeMap<u16, BTreeSet<&'static str>> {
    let mut codes_by_status = BTreeMap::<_, BTreeSet<_>>::new();
    for code in codes {
        codes_by_status.entry(problem::wire_codes(*code).http).or_default().insert(code.as_str());
    }
    codes_by_status
}

/// Returns a reference to the response for these codes, which the document contains only once.
fn shared_error_response(
    status: u16,
    codes: &BTreeSet<&'static str>,
    components: &mut Components,
) -> Value {
    let name = codes.iter().map(|code| component_name(code)).collect::<Vec<_>>().join("Or");
    // Most operations have the same errors; written out at each, they would make up most of the document.
    if !components.error_responses.contains_key(&name) {
        let mut schema = schema_fn::<Problem>()(&mut components.response_schemas).to_value();
        let restriction = json!({"status": {"const": status}, "code": {"enum": codes}});
        insert_member(&mut schema, "properties", restriction);
        components.error_responses.insert(name.clone(), error_response(status, codes, schema));
    }
    json!({"$ref": format!("#/components/responses/{name}")})
}

fn error_response(status: u16, codes: &BTreeSet<&'static str>, schema: Value) -> Value {
    let hints =
        codes.iter().filter_map(|code| Some(format!("`{code}`: {}.", Code::parse(code)?.hint())));
    let headers = match status {
        401 => header_references(&[REQUEST_ID_HEADER, AUTHENTICATE_HEADER]),
        429 | 503 => header_references(&[REQUEST_ID_HEADER, RETRY_AFTER_HEADER]),
        _ => header_references(&[REQUEST_ID_HEADER]),
    };
    json!({
        "description": hints.collect::<Vec<_>>().join("\n\n"),
        "headers": headers,
        "content": {"application/problem+json": {"schema": schema}},
    })
}

fn header_references(headers: &[(&str, &str)]) -> Value {
    let references = headers.iter().map(|(name, component)| {
        ((*name).to_owned(), json!({"$ref": format!("#/components/headers/{component}")}))
    });
    references.collect::<Map<_, _>>().into()
}

/// Converts a code into a component name: `queue-full` becomes `QueueFull`.
fn component_name(code: &str) -> String {
    let words = code.split('-').map(|word| {
        let (first, rest) = word.split_at_checked(1).unwrap_or_default();
        first.to_uppercase() + rest
    });
    words.collect()
}
