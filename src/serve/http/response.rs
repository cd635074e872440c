//! Errors as HTTP responses.

use std::time::Duration;

use algonius_a2a::problem;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde_json::Value;

use super::streaming_json;

/// Error response as a problem document of RFC 9457.
#[derive(Debug)]
pub struct ProblemBody(pub Failure);

impl From<Failure> for ProblemBody {
    fn from(failure: Failure) -> Self {
        Self(failure)
    }
}

impl IntoResponse for ProblemBody {
    /// Keeps the failure in the extensions of the response, so that a later layer can write the body in the format
    /// of the path.
    fn into_response(self) -> Response {
        let response = problem_response(self.0.code, &problem::problem_document(&self.0));
        // The code that refuses a request does not know the path, so the document here may be replaced later (ADR
        // 41).
        let mut response = add_failure_headers(response, &self.0);
        response.extensions_mut().insert(FailureExtension(self.0));
        response
    }
}

/// Failure whose body can still be written in another format.
#[derive(Debug, Clone)]
pub(in crate::serve) struct FailureExtension(pub(in crate::serve) Failure);

/// Refusal before the request is dispatched, with the time to wait before the next attempt.
#[derive(Debug)]
pub struct EarlyRefusal {
    /// Reason for the refusal.
    pub failure: Failure,
    /// Time to wait before the next attempt, if waiting helps.
    pub wait: Option<Duration>,
}

impl EarlyRefusal {
    /// Creates the refusal of a wrong credential from an address that is locked out for this time.
    #[must_use]
    pub fn locked_out(remaining: Duration) -> Self {
        let message = "the credential is not valid, and too many wrong ones came from this address";
        Self { failure: Failure::new(Code::LockedOut, message), wait: Some(remaining) }
    }

    /// Returns the seconds to wait, rounded up, so that a request after that time is not refused again.
    #[must_use]
    pub fn retry_after(&self) -> Option<u64> {
        let wait = self.wait?;
        // `Retry-After: 0` would invite the client at once.
        Some((wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1))
    }

    /// Returns the failure alone, for a protocol without `Retry-After`: it contains the end of the wait as a time.
    #[must_use]
    pub fn into_failure_with_retry_time(self, now: DateTime<Utc>) -> Failure {
        let end =
            self.wait.and_then(|wait| now.checked_add_signed(TimeDelta::from_std(wait).ok()?));
        match end {
            Some(end) => self.failure.with_until(end),
            None => self.failure,
        }
    }
}

impl From<Failure> for EarlyRefusal {
    fn from(failure: Failure) -> Self {
        Self { failure, wait: None }
    }
}

impl IntoResponse for EarlyRefusal {
    fn into_response(self) -> Response {
        let seconds = self.retry_after();
        let mut response = ProblemBody(self.failure).into_response();
        if let Some(seconds) = seconds {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// Returns the HTTP status of a code.
#[must_use]
pub fn http_status(code: Code) -> StatusCode {
    StatusCode::from_u16(problem::wire_codes(code).http)
        .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Creates a JSON response. Caches must not store it: almost every response belongs to one caller.
#[must_use]
pub fn json_response(
    content_type: &'static str,
    status: StatusCode,
    body: &impl Serialize,
) -> Response {
    json_text_response(content_type, status, to_json_text(body))
}

/// Creates a JSON response from a document that may be large.
#[must_use]
pub fn streaming_json_response(
    content_type: &'static str,
    status: StatusCode,
    body: Value,
) -> Response {
    json_text_response(content_type, status, streaming_json::document_body(body))
}

/// Creates a JSON response from a document that is text already.
#[must_use]
pub fn json_text_response(
    content_type: &'static str,
    status: StatusCode,
    body: impl Into<Body>,
) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    (status, headers, body.into()).into_response()
}

/// Serializes a document. All documents of the service are valid JSON, so serialization does not fail.
#[must_use]
pub fn to_json_text(body: &impl Serialize) -> String {
    serde_json::to_string(body).unwrap_or_default()
}

/// Converts a shape into JSON.
///
/// # Errors
/// `internal`, for a shape that JSON cannot hold.
pub fn to_json(value: &impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(value).map_err(|error| {
        tracing::error!(%error, "response cannot be serialized");
        Failure::new(Code::Internal, "the response could not be serialized")
    })
}

/// Creates a problem response for this code.
#[must_use]
pub fn problem_response(code: Code, body: &impl Serialize) -> Response {
    json_response("application/problem+json", http_status(code), body)
}

/// Creates a JSON response with the status 200.
#[must_use]
pub fn ok_response(body: &impl Serialize) -> Response {
    json_response("application/json", StatusCode::OK, body)
}

/// Adds the headers that belong to a failure.
#[must_use]
pub fn add_failure_headers(mut response: Response, failure: &Failure) -> Response {
    let headers = response.headers_mut();
    if failure.code == Code::Unauthenticated {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    // The cause may pass at any time, so the time is short; a refusal with a known end sets its own.
    if problem::is_service_unavailable(failure.code) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    }
    response
}
