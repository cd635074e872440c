//! Failed calls of a remote agent, as the failures of an execution.

use algonius_a2a::client::RemoteError;
use algonius_actors::model::code::{Category, Code};
use algonius_actors::model::failure::Failure;
use hyper::StatusCode;
use serde_json::Value;
use tokio_rustls::rustls;

use crate::drivers::adapters::failure::ReportedFailure;
use crate::platform::http_client::{find_cause, innermost_cause_text};

/// Reason why a call has no result.
#[derive(Debug)]
pub(super) enum RemoteFault {
    /// There is no connection, or it broke before the answer or the first event.
    Unreachable { cause: String },
    /// The certificate of the remote service is not accepted.
    InvalidCertificate { cause: String },
    /// The remote service took too long to answer.
    Timeout,
    /// The answer is not one of A2A.
    InvalidResponse {
        /// Sentence without the content of the answer.
        reason: String,
    },
    /// The call cannot be written as an HTTP request.
    InvalidRequest,
    /// The answer, or an event of it, is longer than this number of bytes.
    ResponseTooLong { limit: usize },
    /// The remote service refused the call.
    ErrorResponse { status: StatusCode, retry_after: Option<String>, error: RemoteError },
}

impl RemoteFault {
    /// Returns the fault of a stream that ended before its first event, or broke for this cause.
    pub(super) fn for_stream_without_task(break_cause: Option<String>) -> Self {
        let reason = "the stream of the remote agent ended before it named a task".to_owned();
        break_cause.map_or(Self::InvalidResponse { reason }, |cause| Self::Unreachable { cause })
    }

    /// Returns the fault of a document that breaks a rule of A2A, which the failure names.
    pub(super) fn from_invalid_document(failure: &Failure) -> Self {
        let reason = format!("the answer of the remote agent is not A2A: {}", failure.message);
        Self::InvalidResponse { reason }
    }

    /// Returns the fault of a request that the connection did not carry.
    pub(super) fn from_connection_error(error: &hyper_util::client::legacy::Error) -> Self {
        match find_cause::<rustls::Error>(error) {
            // Unlike other faults of a connection, a wrong certificate does not pass by itself.
            Some(fault @ rustls::Error::InvalidCertificate(_)) => {
                Self::InvalidCertificate { cause: fault.to_string() }
            }
            _ => Self::Unreachable { cause: innermost_cause_text(error) },
        }
    }

    /// Returns true if the remote agent does not offer the called operation.
    pub(super) fn is_unsupported(&self) -> bool {
        match self {
            Self::ErrorResponse { status, error, .. } => {
                error.is_unsupported()
                    || matches!(
                        *status,
                        StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED
                    )
            }
            _ => false,
        }
    }

    /// Returns true if the same call may succeed at once or soon.
    pub(super) fn is_transient(&self) -> bool {
        matches!(self.to_failure().category.as_str(), "transient" | "overload" | "rate_limit")
    }

    /// Returns the failure of the attempt. The message is raw.
    pub(super) fn to_failure(&self) -> ReportedFailure {
        let (category, message) = match self {
            Self::Unreachable { cause } => {
                ("transient", format!("the remote agent cannot be reached: {cause}"))
            }
            Self::InvalidCertificate { cause } => (
                "permanent",
                format!("the certificate of the remote service is not accepted: {cause}"),
            ),
            Self::Timeout => ("transient", "the remote agent did not answer in time".to_owned()),
            Self::InvalidResponse { reason } => ("permanent", reason.clone()),
            Self::InvalidRequest => (
                "permanent",
                "the URL or the token of the remote agent cannot be part of an HTTP request"
                    .to_owned(),
            ),
            Self::ResponseTooLong { limit } => (
                "permanent",
                format!("the remote agent answered with more than {} MiB at once", limit >> 20),
            ),
            Self::ErrorResponse { status, error, .. } => {
                let number = status.as_u16();
                let detail = match error.message.as_str() {
                    "" => String::new(),
                    message => format!(": {message}"),
                };
                let message = match status.is_success() {
                    _ if error.is_malformed_answer => {
                        format!("the answer of the remote agent is not A2A{detail}")
                    }
                    true => format!("the remote agent returned an error{detail}"),
                    false => format!("the remote agent refused (HTTP {number}){detail}"),
                };
                (category(*status, error), message)
            }
        };
        let retry_after = match self {
            Self::ErrorResponse { retry_after, .. } => retry_after.clone().map(Value::String),
            _ => None,
        };
        // Every service on the way back of a loop reports the loop, so that the first sender learns of it.
        let code_override = match self {
            Self::ErrorResponse { error, .. } => {
                error.code.filter(|code| *code == Code::TooManyHops)
            }
            _ => None,
        };
        let category = category.to_owned();
        ReportedFailure {
            message,
            category,
            retry_after,
            code_override,
            ..ReportedFailure::default()
        }
    }
}

/// Returns the kind of a refusal, as programs name it.
fn category(status: StatusCode, error: &RemoteError) -> &'static str {
    match status.as_u16() {
        401 | 403 => return "authentication",
        429 => return "rate_limit",
        503 => return "overload",
        408 | 500 | 502 | 504 => return "transient",
        _ => {}
    }
    match error.code {
        Some(Code::Unauthenticated | Code::Forbidden) => "authentication",
        Some(Code::RateLimited) => "rate_limit",
        Some(code) if code.category() == Category::Transient => "overload",
        _ => "permanent",
    }
}
