//! The API for programs and for the command line: `/api/v1`, and the state of the service.

pub mod agents;
mod endpoint;
mod endpoints;
pub mod executions;
pub mod interactions;
mod openapi;
pub mod quota;
pub mod schedules;
pub mod usage;

use algonius_a2a::json_object::document::parse_document;
use algonius_actors::model::access::principal::Right;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::AppState;
use super::auth::caller::AuthenticatedCaller;
use super::http::body;
use super::http::response::{ProblemBody, ok_response};
use endpoint::ApiEndpoint;

/// Returns the routes of the API.
pub(super) fn routes() -> Router<AppState> {
    endpoint::routes(operations())
}

/// Generates the OpenAPI document of the API.
#[must_use]
pub fn openapi_document() -> Value {
    openapi::generate_document(&operations(), endpoints::TAGS)
}

/// Returns all operations: those of the table, and the one that returns the description of all.
fn operations() -> Vec<ApiEndpoint> {
    let openapi_endpoint = ApiEndpoint::get("/api/v1/openapi.json", show_openapi)
        .with_operation("getOpenApi", "Get this description.")
        .with_tag("service")
        .with_required_right(Right::Read)
        .with_response::<Map<String, Value>>(200, "Description in OpenAPI 3.1.");
    endpoints::operations().into_iter().chain([openapi_endpoint]).collect()
}

/// Returns the OpenAPI document.
///
/// # Errors
/// `forbidden`.
async fn show_openapi(caller: AuthenticatedCaller) -> Result<Response, ProblemBody> {
    caller.require_right(Right::Read, None)?;
    Ok(ok_response(&openapi_document()))
}

/// Creates the failure of a request with an invalid parameter.
fn invalid_params(text: &str) -> Failure {
    Failure::new(Code::InvalidParams, text)
}

/// Reads the JSON body of a request.
///
/// # Errors
/// `malformed-json`, or `invalid-params` for a body of another shape.
async fn read_json_body<T: DeserializeOwned>(
    app: &AppState,
    request: Request,
) -> Result<T, Failure> {
    let bytes = body::read_json_bytes(app, request).await?;
    // In two steps, because bytes that are no JSON and a body of another shape have different codes.
    let value = parse_document(&bytes)?;
    // A list would be read as the fields in their order.
    if !value.is_object() {
        return Err(invalid_params("the body must be a JSON object"));
    }
    serde_json::from_value(value)
        .map_err(|error| invalid_params(&format!("the body cannot be read: {error}")))
}
