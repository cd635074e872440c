//! Failures as whole HTTP answers.

use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;

use super::auth::Rejected;
use super::document;
use crate::wire::problem;

/// A failure on its way out, as a document of RFC 9457.
#[derive(Debug)]
pub struct Problem(pub Failure);

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Self(failure)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        with_failure(problem(self.0.code, &problem::document(&self.0)), &self.0)
    }
}

/// A refusal before the request itself is looked at, with the time after which to come again.
#[derive(Debug)]
pub struct Refused {
    /// Why.
    pub failure: Failure,
    /// How long to wait, where waiting is what there is to do.
    pub wait: Option<Duration>,
}

impl Refused {
    /// The address is blocked for so long.
    #[must_use]
    pub fn locked_out(rest: Duration) -> Self {
        let message = "too many wrong credentials came from this address";
        Self { failure: Failure::new(Code::LockedOut, message), wait: Some(rest) }
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self { failure, wait: None }
    }
}

impl From<Rejected> for Refused {
    fn from(rejected: Rejected) -> Self {
        Failure::from(rejected).into()
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut response = Problem(self.failure).into_response();
        if let Some(wait) = self.wait {
            // Whole seconds, rounded up: who comes then is not refused again.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            response.headers_mut().insert(header::RETRY_AFTER, seconds.max(1).into());
        }
        response
    }
}

/// The HTTP status of a code.
#[must_use]
pub fn status(code: Code) -> StatusCode {
    StatusCode::from_u16(problem::numbers(code).http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// A JSON answer. It is never kept by caches: almost everything here belongs to one caller.
#[must_use]
pub fn json(content_type: &'static str, status: StatusCode, body: &impl Serialize) -> Response {
    written(content_type, status, text(body))
}

/// The same of what may be long.
#[must_use]
pub fn long(content_type: &'static str, status: StatusCode, body: Value) -> Response {
    written(content_type, status, document::body(body))
}

/// The same, of a document that is text already.
#[must_use]
pub fn written(content_type: &'static str, status: StatusCode, body: impl Into<Body>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    (status, headers, body.into()).into_response()
}

/// A document as text. There is none that JSON cannot hold.
#[must_use]
pub fn text(body: &impl Serialize) -> String {
    serde_json::to_string(body).unwrap_or_default()
}

/// A document about a failure of this code.
#[must_use]
pub fn problem(code: Code, body: &impl Serialize) -> Response {
    json("application/problem+json", status(code), body)
}

/// A good answer.
#[must_use]
pub fn ok(body: &impl Serialize) -> Response {
    json("application/json", StatusCode::OK, body)
}

/// Adds the headers that a failure calls for.
#[must_use]
pub fn with_failure(mut response: Response, failure: &Failure) -> Response {
    let headers = response.headers_mut();
    if failure.code == Code::Unauthenticated {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if problem::is_unavailable(failure.code) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    }
    response
}
