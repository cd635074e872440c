//! What an operation answers: good answers, and refusals by the one table of codes.

use std::collections::{BTreeMap, BTreeSet};

use algonius_actors::model::code::Code;
use serde_json::{Map, Value, json};

use super::{Shapes, put};
use crate::serve::api::operation::{Answer, Content, Of, Operation, shape};
use crate::wire::problem::{self, Problem};

/// The header that every answer has.
const REQUEST_ID: (&str, &str) = ("X-Request-Id", "RequestId");
/// The header that says when to come again.
const RETRY_AFTER: (&str, &str) = ("Retry-After", "RetryAfter");
/// The header that says how to authenticate.
const AUTHENTICATE: (&str, &str) = ("WWW-Authenticate", "Authenticate");

/// The headers, by the names of their descriptions.
pub(super) fn headers() -> Value {
    let header = |says: &str, schema: Value| json!({"description": says, "required": true, "schema": schema});
    json!({
        REQUEST_ID.1: header(
            "The id of the request, also in the log: the caller's own where it sent one.",
            json!({"type": "string"}),
        ),
        RETRY_AFTER.1: header(
            "Seconds after which the request may be sent again.",
            json!({"type": "integer", "minimum": 1}),
        ),
        AUTHENTICATE.1: header("How to authenticate.", json!({"type": "string", "const": "Bearer"})),
    })
}

/// Every answer of an operation, by its status.
pub(super) fn all(operation: &Operation, shapes: &mut Shapes) -> Value {
    let mut all = Map::new();
    for answer in &operation.answers {
        all.insert(answer.status.to_string(), good(answer, shapes));
    }
    for (status, codes) in by_status(&operation.codes) {
        let richer = operation.richer.iter().find(|(code, _)| codes.contains(code.as_str()));
        let told = match richer {
            Some((_, of)) => {
                let schema = of(&mut shapes.told).to_value();
                refusal(status, &codes, schema)
            }
            None => usual(status, &codes, shapes),
        };
        all.insert(status.to_string(), told);
    }
    all.into()
}

fn good(answer: &Answer, shapes: &mut Shapes) -> Value {
    let mut told = json!({"description": answer.says, "headers": named(&[REQUEST_ID])});
    let contents = answer.contents.iter();
    let contents: Map<_, _> =
        contents.map(|content| (content.media.to_owned(), held(content, shapes))).collect();
    if !contents.is_empty() {
        put(&mut told, "content", contents.into());
    }
    told
}

/// Lines and events are documents of their own, which OpenAPI 3.1 cannot say of a part of a body.
fn held(content: &Content, shapes: &mut Shapes) -> Value {
    match &content.of {
        Of::Document(of) => json!({"schema": of(&mut shapes.told)}),
        Of::Text => json!({"schema": {"type": "string"}}),
        Of::Documents(kinds) => {
            let kinds = kinds
                .iter()
                .map(|(kind, of)| ((*kind).to_owned(), of(&mut shapes.told).to_value()));
            let kinds: Map<_, _> = kinds.collect();
            json!({"schema": {"type": "string"}, "x-documents": kinds})
        }
    }
}

/// The codes, by the status that each has on HTTP.
fn by_status(codes: &[Code]) -> BTreeMap<u16, BTreeSet<&'static str>> {
    let mut all = BTreeMap::<_, BTreeSet<_>>::new();
    for code in codes {
        all.entry(problem::numbers(*code).http).or_default().insert(code.as_str());
    }
    all
}

/// The same codes are described once.
fn usual(status: u16, codes: &BTreeSet<&'static str>, shapes: &mut Shapes) -> Value {
    let name = codes.iter().map(|code| title(code)).collect::<Vec<_>>().join("Or");
    if !shapes.refusals.contains_key(&name) {
        let mut schema = shape::<Problem>()(&mut shapes.told).to_value();
        let narrower = json!({"status": {"const": status}, "code": {"enum": codes}});
        put(&mut schema, "properties", narrower);
        shapes.refusals.insert(name.clone(), refusal(status, codes, schema));
    }
    json!({"$ref": format!("#/components/responses/{name}")})
}

fn refusal(status: u16, codes: &BTreeSet<&'static str>, schema: Value) -> Value {
    let says =
        codes.iter().filter_map(|word| Some(format!("`{word}`: {}.", Code::parse(word)?.hint())));
    let headers = match status {
        401 => named(&[REQUEST_ID, AUTHENTICATE]),
        429 | 503 => named(&[REQUEST_ID, RETRY_AFTER]),
        _ => named(&[REQUEST_ID]),
    };
    json!({
        "description": says.collect::<Vec<_>>().join("\n\n"),
        "headers": headers,
        "content": {"application/problem+json": {"schema": schema}},
    })
}

fn named(headers: &[(&str, &str)]) -> Value {
    let named = headers.iter().map(|(name, described)| {
        ((*name).to_owned(), json!({"$ref": format!("#/components/headers/{described}")}))
    });
    named.collect::<Map<_, _>>().into()
}

/// A code as the name of something: `queue-full` is `QueueFull`.
fn title(code: &str) -> String {
    let words = code.split('-').map(|word| {
        let (first, rest) = word.split_at_checked(1).unwrap_or_default();
        first.to_uppercase() + rest
    });
    words.collect()
}
