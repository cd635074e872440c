//! Refusals in each dialect, with the time at which they end.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use chrono::{SecondsFormat, TimeDelta};
use serde_json::{Value, json};

use crate::dialect::ApiDialect;
use crate::directive::Directive;
use crate::scripted_answer::now;

/// Returns the headers and the body of a refusal with this status.
pub(crate) fn refusal(
    dialect: ApiDialect,
    status: u16,
    directive: &Directive,
) -> (HeaderMap, Value) {
    let mut headers = HeaderMap::new();
    let mut add_header = |name: &'static str, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    if let Some(seconds) = directive.number("retry_after") {
        add_header("retry-after", seconds.to_string());
    }
    let reset_seconds = directive.number("reset").and_then(|seconds| i64::try_from(seconds).ok());
    match (dialect, reset_seconds) {
        (ApiDialect::Anthropic, Some(seconds)) => {
            let reset_at = now() + TimeDelta::seconds(seconds);
            add_header("anthropic-ratelimit-requests-remaining", "0".to_owned());
            add_header(
                "anthropic-ratelimit-requests-reset",
                reset_at.to_rfc3339_opts(SecondsFormat::Secs, true),
            );
        }
        (ApiDialect::Chat | ApiDialect::Responses, Some(seconds)) => {
            add_header("x-ratelimit-remaining-requests", "0".to_owned());
            add_header("x-ratelimit-reset-requests", format!("{seconds}s"));
        }
        (ApiDialect::Gemini, Some(_)) | (_, None) => {}
    }
    (headers, body(dialect, status, reset_seconds))
}

fn body(dialect: ApiDialect, status: u16, reset_seconds: Option<i64>) -> Value {
    let (kind, google_status, description) = status_names(status);
    let message = format!("mock: {description}");
    match dialect {
        ApiDialect::Anthropic => {
            json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_mock"})
        }
        ApiDialect::Chat | ApiDialect::Responses => {
            let code = match status {
                401 => "invalid_api_key",
                429 => "rate_limit_exceeded",
                _ => kind,
            };
            json!({"error": {"message": message, "type": kind, "code": code, "param": null}})
        }
        ApiDialect::Gemini => {
            let mut error = json!({"code": status, "message": message, "status": google_status});
            if let Some(seconds) = reset_seconds {
                let kind = "type.googleapis.com/google.rpc.RetryInfo";
                error["details"] = json!([{"@type": kind, "retryDelay": format!("{seconds}s")}]);
            }
            json!({"error": error})
        }
    }
}

/// Returns the names of a status at Anthropic and `OpenAI`, at Google, and in words.
const fn status_names(status: u16) -> (&'static str, &'static str, &'static str) {
    match status {
        400 => ("invalid_request_error", "INVALID_ARGUMENT", "invalid request"),
        401 => ("authentication_error", "UNAUTHENTICATED", "invalid api key"),
        403 => ("permission_error", "PERMISSION_DENIED", "permission denied"),
        404 => ("not_found_error", "NOT_FOUND", "not found"),
        413 => ("request_too_large", "INVALID_ARGUMENT", "request too large"),
        429 => ("rate_limit_error", "RESOURCE_EXHAUSTED", "rate limit exceeded"),
        503 => ("api_error", "UNAVAILABLE", "unavailable"),
        529 => ("overloaded_error", "UNAVAILABLE", "overloaded"),
        _ => ("api_error", "INTERNAL", "internal error"),
    }
}
