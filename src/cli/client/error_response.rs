//! Responses that refuse a request, as errors of the command line.

use serde_json::Value;

use crate::cli::error::CliError;
use crate::wire::api::ErrorBody;

/// Returns the result of a JSON-RPC response.
pub(crate) fn take_rpc_result(mut response: Value) -> Result<Value, CliError> {
    match (response.get_mut("result").map(Value::take), response.get("error")) {
        (Some(result), None) => Ok(result),
        (_, Some(error)) => Err(CliError::RequestRefused(rpc_error_body(error))),
        (None, None) => {
            Err(CliError::UnexpectedResponse { reason: "it has neither result nor error" })
        }
    }
}

/// Returns true for an error response that has neither a code nor a message where this service has them.
pub(super) fn is_foreign_response(bytes: &[u8]) -> bool {
    match parse_error_response(bytes) {
        CliError::RequestRefused(ErrorBody { code, message, .. }) => {
            code.is_empty() && message.is_empty()
        }
        CliError::UnexpectedResponse { .. } => true,
        _ => false,
    }
}

/// Converts an error response in either of the two formats.
pub(super) fn parse_error_response(bytes: &[u8]) -> CliError {
    let Ok(document) = serde_json::from_slice::<Value>(bytes) else {
        return CliError::UnexpectedResponse { reason: "it is not JSON" };
    };
    match document.get("error") {
        Some(error) => CliError::RequestRefused(rpc_error_body(error)),
        None => parse_config_rejection(&document).unwrap_or_else(|| {
            CliError::RequestRefused(error_body(&document, document.get("detail")))
        }),
    }
}

/// Converts a rejected configuration with all its errors.
fn parse_config_rejection(document: &Value) -> Option<CliError> {
    let faults = document.get("rejected")?.as_array().filter(|faults| !faults.is_empty())?;
    let faults = faults.iter().filter_map(|fault| serde_json::from_value(fault.clone()).ok());
    let error_body = error_body(document, document.get("detail"));
    Some(CliError::ConfigurationRejected { error_body, faults: faults.collect() })
}

/// Converts a JSON-RPC error. The details of the service are the metadata of the first detail.
fn rpc_error_body(error: &Value) -> ErrorBody {
    error_body(error.pointer("/data/0/metadata").unwrap_or(error), error.get("message"))
}

fn error_body(details: &Value, message: Option<&Value>) -> ErrorBody {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    ErrorBody {
        code: text(details.get("code")),
        category: text(details.get("category")),
        message: text(message),
        hint: text(details.get("hint")),
    }
}
