//! Responses of an operation: successful ones, and errors from the table of codes.

use std::collections::{BTreeMap, BTreeSet};

use algonius_a2a::problem::{self, Problem};
use algonius_actors::model::code::Code;
use serde_json::{Map, Value, json};

use super::{Components, insert_member};
use crate::serve::api::endpoint::{
    ApiEndpoint, BodyContent, ContentSchema, EndpointResponse, schema_of,
};

/// Header that every response has.
const REQUEST_ID_HEADER: (&str, &str) = ("X-Request-Id", "RequestId");
/// Header with the seconds to wait before the next request.
const RETRY_AFTER_HEADER: (&str, &str) = ("Retry-After", "RetryAfter");
/// Header with the authentication scheme.
const AUTHENTICATE_HEADER: (&str, &str) = ("WWW-Authenticate", "Authenticate");

/// Returns the descriptions of the headers by name.
pub(super) fn headers() -> Value {
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
pub(super) fn all(operation: &ApiEndpoint, shapes: &mut Components) -> Value {
    let mut all = Map::new();
    for answer in &operation.responses {
        all.insert(answer.status.to_string(), success_response(answer, shapes));
    }
    for (status, codes) in by_status(&operation.errors.codes) {
        // A status has one response, so the code with additional members describes all codes of its status.
        let extended =
            operation.errors.with_body.iter().find(|(code, _)| codes.contains(code.as_str()));
        let response = match extended {
            Some((_, schema_fn)) => {
                let schema = schema_fn(&mut shapes.responses).to_value();
                error_response(status, &codes, schema)
            }
            None => shared_error_response(status, &codes, shapes),
        };
        all.insert(status.to_string(), response);
    }
    all.into()
}

fn success_response(answer: &EndpointResponse, shapes: &mut Components) -> Value {
    let mut response = json!({"description": answer.description, "headers": header_references(&[REQUEST_ID_HEADER])});
    let contents = answer.contents.iter();
    let contents: Map<_, _> = contents
        .map(|content| (content.media.to_owned(), content_object(content, shapes)))
        .collect();
    if !contents.is_empty() {
        insert_member(&mut response, "content", contents.into());
    }
    response
}

/// Generates the content of a response. Lines and events are separate documents, which OpenAPI 3.1 cannot describe
/// within a body.
fn content_object(content: &BodyContent, shapes: &mut Components) -> Value {
    match &content.of {
        ContentSchema::Document(of) => json!({"schema": of(&mut shapes.responses)}),
        ContentSchema::Text => json!({"schema": {"type": "string"}}),
        ContentSchema::Documents(kinds) => {
            let kinds = kinds
                .iter()
                .map(|(kind, of)| ((*kind).to_owned(), of(&mut shapes.responses).to_value()));
            let kinds: Map<_, _> = kinds.collect();
            json!({"schema": {"type": "string"}, "x-documents": kinds})
        }
    }
}

/// Groups the codes by their HTTP status.
fn by_status(codes: &[Code]) -> BTreeMap<u16, BTreeSet<&'static str>> {
    let mut all = BTreeMap::<_, BTreeSet<_>>::new();
    for code in codes {
        all.entry(problem::wire_codes(*code).http).or_default().insert(code.as_str());
    }
    all
}

/// Returns a reference to the response for these codes, which the document contains only once.
fn shared_error_response(
    status: u16,
    codes: &BTreeSet<&'static str>,
    shapes: &mut Components,
) -> Value {
    let name = codes.iter().map(|code| component_name(code)).collect::<Vec<_>>().join("Or");
    // Most operations have the same errors; written out at each, they would make up most of the document.
    if !shapes.error_responses.contains_key(&name) {
        let mut schema = schema_of::<Problem>()(&mut shapes.responses).to_value();
        let restriction = json!({"status": {"const": status}, "code": {"enum": codes}});
        insert_member(&mut schema, "properties", restriction);
        shapes.error_responses.insert(name.clone(), error_response(status, codes, schema));
    }
    json!({"$ref": format!("#/components/responses/{name}")})
}

fn error_response(status: u16, codes: &BTreeSet<&'static str>, schema: Value) -> Value {
    let hints =
        codes.iter().filter_map(|word| Some(format!("`{word}`: {}.", Code::parse(word)?.hint())));
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
    let named = headers.iter().map(|(name, described)| {
        ((*name).to_owned(), json!({"$ref": format!("#/components/headers/{described}")}))
    });
    named.collect::<Map<_, _>>().into()
}

/// Converts a code into a component name: `queue-full` becomes `QueueFull`.
fn component_name(code: &str) -> String {
    let words = code.split('-').map(|word| {
        let (first, rest) = word.split_at_checked(1).unwrap_or_default();
        first.to_uppercase() + rest
    });
    words.collect()
}
