//! Receipt of request bodies under a size limit and a time limit, with a check of the media type.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::PrincipalId;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::caller_budget::CallerReservation;
use crate::serve::AppState;

/// Receives the body of a request whose content type must be JSON.
///
/// # Errors
/// `content-type-unsupported`, `body-too-large`, `body-timeout`, or `invalid-request` if the connection is lost.
pub async fn read_json_bytes(app: &AppState, request: Request) -> Result<Bytes, Failure> {
    if !has_json_type(request.headers()) {
        return Err(Failure::new(Code::ContentType, "the body must be `application/json`"));
    }
    let (parts, body) = request.into_parts();
    read_body(app, principal_of(&parts), body, app.body_limits.max_bytes).await
}

/// Receives the body of a request whose content type is JSON, or absent if the body is empty.
///
/// # Errors
/// Fails like [`read_json_bytes`].
pub async fn read_json_bytes_or_empty(app: &AppState, request: Request) -> Result<Bytes, Failure> {
    let has_content_type = request.headers().contains_key(header::CONTENT_TYPE);
    let is_json = has_json_type(request.headers());
    let (parts, body) = request.into_parts();
    let body = read_body(app, principal_of(&parts), body, app.body_limits.max_bytes).await?;
    if is_json || (!has_content_type && body.is_empty()) {
        Ok(body)
    } else {
        Err(Failure::new(Code::ContentType, "the body must be `application/json`"))
    }
}

/// Returns the principal that the authentication of a request has recorded.
fn principal_of(parts: &Parts) -> Option<PrincipalId> {
    parts.extensions.get().copied()
}

/// Receives a body of this caller; `None` is a caller without credentials.
///
/// # Errors
/// `body-too-large`, `body-timeout`, `pressure` if too many bodies arrive at once, or `invalid-request` if the
/// connection is lost.
pub async fn read_body(
    app: &AppState,
    caller: Option<PrincipalId>,
    body: Body,
    limit: usize,
) -> Result<Bytes, Failure> {
    // A declared length is checked before the body is polled, because polling invites the client to send it.
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large_failure(limit));
    }
    let body = collect_body(
        app.body_limits.budget.start_reservation(caller),
        Limited::new(body, limit),
        limit,
    );
    match tokio::time::timeout(app.body_limits.timeout, body).await {
        Ok(body) => body,
        Err(_elapsed) => Err(Failure::new(Code::BodyTimeout, "the body did not arrive in time")),
    }
}

/// Receives a body while the memory budget for bodies allows it.
async fn collect_body(
    mut reservation: CallerReservation,
    mut body: Limited<Body>,
    limit: usize,
) -> Result<Bytes, Failure> {
    let mut received_bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => {
                let data = frame.into_data().unwrap_or_default(); // Trailers are nothing of the body.
                // Bytes count when they arrive. A declared length is a claim, and reserving it would let idle
                // requests fill the budget.
                if !reservation.try_grow(data.len()) {
                    let message = "too many request bodies arrive at once";
                    return Err(Failure::new(Code::Pressure, message));
                }
                received_bytes.extend_from_slice(&data);
            }
            Err(error) if error.is::<LengthLimitError>() => return Err(too_large_failure(limit)),
            Err(_broken) => {
                return Err(Failure::new(Code::InvalidRequest, "the body is incomplete"));
            }
        }
    }
    Ok(received_bytes.freeze())
}

fn too_large_failure(limit: usize) -> Failure {
    Failure::new(Code::BodyTooLarge, format!("the body has more than {limit} bytes"))
}

/// True if the content type of a request is JSON.
#[must_use]
pub fn is_json_request(request: &Request) -> bool {
    has_json_type(request.headers())
}

fn has_json_type(headers: &HeaderMap) -> bool {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = text.and_then(|text| text.split(';').next()).unwrap_or_default().trim();
    media_type.eq_ignore_ascii_case("application/json")
        || media_type.eq_ignore_ascii_case("application/a2a+json")
}
