//! Reads a body under a limit of size and of time, and sees that it is JSON by its own word.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::App;

/// The whole body of a request that says it is JSON.
///
/// # Errors
/// `content-type-unsupported`, `body-too-large`, `body-timeout`, or `invalid-request` when the
/// connection broke.
pub async fn json(app: &App, request: Request) -> Result<Bytes, Failure> {
    if !says_json(request.headers()) {
        return Err(Failure::new(Code::ContentType, "the body must be `application/json`"));
    }
    whole(app, request.into_body(), app.max_body).await
}

/// The whole body of a request that says it is JSON, or that says nothing since it has none.
///
/// # Errors
/// As for [`json`].
pub async fn any(app: &App, request: Request) -> Result<Bytes, Failure> {
    let is_said = request.headers().contains_key(header::CONTENT_TYPE);
    let is_json = says_json(request.headers());
    let body = whole(app, request.into_body(), app.max_body).await?;
    if is_json || (!is_said && body.is_empty()) {
        Ok(body)
    } else {
        Err(Failure::new(Code::ContentType, "the body must be `application/json`"))
    }
}

/// The whole of a body.
///
/// # Errors
/// `body-too-large`, `body-timeout`, or `invalid-request` when the connection broke.
pub async fn whole(app: &App, body: Body, limit: usize) -> Result<Bytes, Failure> {
    let body = Limited::new(body, limit).collect();
    match tokio::time::timeout(app.body_timeout, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let message = format!("the body has more than {limit} bytes");
            Err(Failure::new(Code::BodyTooLarge, message))
        }
        Ok(Err(_broken)) => {
            Err(Failure::new(Code::InvalidRequest, "the body did not arrive whole"))
        }
        Err(_elapsed) => Err(Failure::new(Code::BodyTimeout, "the body did not arrive in time")),
    }
}

/// Whether a request says that its body is JSON.
#[must_use]
pub fn is_json(request: &Request) -> bool {
    says_json(request.headers())
}

fn says_json(headers: &HeaderMap) -> bool {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = text.and_then(|text| text.split(';').next()).unwrap_or_default().trim();
    media_type.eq_ignore_ascii_case("application/json")
        || media_type.eq_ignore_ascii_case("application/a2a+json")
}
