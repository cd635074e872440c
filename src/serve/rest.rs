//! A2A over HTTP+JSON, both versions on the same paths: `/agents/<id>/v1/message:send` and its like.
//! The version is told by `A2A-Version`.

use std::collections::HashMap;

use algonius_actors::model::code::Code;
use algonius_actors::model::exposure::{Binding, Version};
use algonius_actors::model::failure::Failure;
use axum::extract::{Path, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::Response;
use serde_json::{Map, Value};

use super::auth::Who;
use super::beside::Beside;
use super::jsonrpc::known;
use super::perform::{Asked, Dialect, Told, perform};
use super::version::{self, Wanted};
use super::{App, answer, body, envelope, sse};
use crate::wire::a2a::Method as Asking;
use crate::wire::a2a::v0_3::rest::read::body as parse;
use crate::wire::envelope::is_envelope;
use crate::wire::{placed, problem};

/// What a path and a method mean, with what the path says about the parameters.
struct Meant {
    operation: Asking,
    placed: Vec<(&'static str, String)>,
}

/// What came of a call.
enum Answered {
    /// An answer of the protocol.
    Told(Told),
    /// The answer to an envelope.
    InKind(Response),
}

/// Answers a call to anything below `/agents/<id>/v1/`.
pub async fn call(
    State(app): State<App>,
    Path((agent, rest)): Path<(String, String)>,
    who: Who,
    request: Request,
) -> Response {
    let wanted = version::wanted(&request);
    let version = wanted.as_ref().map_or(Version::V0_3, |wanted| wanted.version());
    let dialect = match version {
        Version::V0_3 => Dialect::Rest0_3,
        Version::V1_0 => Dialect::V1_0,
    };
    let is_new_type = says_a2a(&request);
    let is_foreign =
        request.headers().contains_key(header::CONTENT_TYPE) && !body::is_json(&request);
    match told(&app, who, (&agent, &rest), (wanted, dialect), request).await {
        Ok(Answered::InKind(response)) => response,
        Ok(Answered::Told(Told::Whole(Value::Null))) => {
            answer::json("application/json", StatusCode::OK, &empty())
        }
        Ok(Answered::Told(Told::Whole(result))) => {
            answer::long(content_type(is_new_type), StatusCode::OK, result)
        }
        Ok(Answered::Told(Told::Stream(events))) => {
            let fail = move |refusal: &Failure| problem::rest(refusal, version);
            sse::response(events, move |event| dialect.event(event), fail)
        }
        // What HTTP itself has a word for is said by that.
        Err(refusal) if is_foreign && refusal.code == Code::ContentType => {
            refused(&refusal, version, StatusCode::UNSUPPORTED_MEDIA_TYPE)
        }
        Err(refusal) => refused(&refusal, version, status(&refusal, version)),
    }
}

fn status(refusal: &Failure, version: Version) -> StatusCode {
    let status = StatusCode::from_u16(problem::http(refusal.code, version));
    status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

async fn told(
    app: &App,
    who: Who,
    (agent, rest): (&str, &str),
    (wanted, dialect): (Result<Wanted, Failure>, Dialect),
    request: Request,
) -> Result<Answered, Failure> {
    wanted?;
    let agent = known(app, agent)?;
    let Meant { operation, placed: said } = meant(request.method(), rest)?;
    let beside = Beside::of(request.headers())?;
    let query = query(request.uri().query().unwrap_or_default());
    let params = match *request.method() {
        Method::POST | Method::PUT => parse(&body::any(app, request).await?)?,
        _ => query,
    };
    if operation == Asking::Send && is_envelope(&params) {
        return Ok(Answered::InKind(envelope::answer(app, who, &agent, (params, beside)).await));
    }
    let said: Vec<_> = said.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let params = placed(params, &said)?;
    let asked = Asked { operation, dialect, binding: Binding::HttpJson, params, beside };
    perform(app, who, &agent, asked).await.map(Answered::Told)
}

fn meant(method: &Method, rest: &str) -> Result<Meant, Failure> {
    let parts: Vec<_> = rest.trim_end_matches('/').split('/').collect();
    let of = |operation, placed: &[(&'static str, &str)]| {
        let placed = placed.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Ok(Meant { operation, placed })
    };
    match (method.as_str(), parts.as_slice()) {
        ("POST", ["message:send"]) => of(Asking::Send, &[]),
        ("POST", ["message:stream"]) => of(Asking::Stream, &[]),
        ("GET", ["tasks"]) => of(Asking::List, &[]),
        ("GET", ["card" | "extendedAgentCard"]) => of(Asking::ExtendedCard, &[]),
        ("GET" | "POST", ["tasks", task]) => match (method.as_str(), task.split_once(':')) {
            ("GET", None) => of(Asking::Get, &[("id", task)]),
            ("POST", Some((id, "cancel"))) => of(Asking::Cancel, &[("id", id)]),
            (_, Some((id, "subscribe"))) => of(Asking::Subscribe, &[("id", id)]),
            _ => Err(nothing()),
        },
        ("POST", ["tasks", id, "pushNotificationConfigs"]) => {
            of(Asking::PushSet, &[("taskId", id)])
        }
        ("GET", ["tasks", id, "pushNotificationConfigs"]) => {
            of(Asking::PushList, &[("taskId", id)])
        }
        ("GET", ["tasks", id, "pushNotificationConfigs", config]) => {
            of(Asking::PushGet, &[("taskId", id), ("id", config)])
        }
        ("DELETE", ["tasks", id, "pushNotificationConfigs", config]) => {
            of(Asking::PushDelete, &[("taskId", id), ("id", config)])
        }
        _ => Err(nothing()),
    }
}

fn nothing() -> Failure {
    Failure::new(Code::PathUnknown, "there is nothing here")
}

/// A query as parameters: numbers and truth values stay texts, which the dialects read too.
fn query(query: &str) -> Value {
    let pairs: HashMap<String, String> =
        axum::extract::Query::try_from_uri(&format!("/?{query}").parse().unwrap_or_default())
            .map(|axum::extract::Query(pairs)| pairs)
            .unwrap_or_default();
    let kept = pairs.into_iter().filter(|(name, _)| !name.eq_ignore_ascii_case("a2a-version"));
    Value::Object(kept.map(|(name, text)| (name, Value::String(text))).collect::<Map<_, _>>())
}

fn empty() -> Value {
    Value::Object(Map::new())
}

fn says_a2a(request: &Request) -> bool {
    let is_a2a = |name| {
        let value = request.headers().get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.contains("application/a2a+json"))
    };
    is_a2a(header::CONTENT_TYPE) || is_a2a(header::ACCEPT)
}

/// The answer's type is that of the request: clients read what they write.
const fn content_type(is_a2a: bool) -> &'static str {
    if is_a2a { "application/a2a+json" } else { "application/json" }
}

fn refused(refusal: &Failure, version: Version, status: StatusCode) -> Response {
    let body = problem::rest(refusal, version);
    answer::with_failure(answer::json("application/json", status, &body), refusal)
}
