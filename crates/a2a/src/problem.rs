//! The one table of errors on the wire: the number of each code in each protocol.

use algonius_actors::model::code::{Category, Code};
use algonius_actors::model::failure::Failure;
use chrono::{DateTime, SecondsFormat, SubsecRound, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::v1::ProtocolVersion;

/// Numbers of one code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireCodes {
    /// JSON-RPC error number: the protocol's own from -32001, those of this service from -32050.
    pub jsonrpc: i64,
    /// HTTP status if the error is the whole answer.
    pub http: u16,
    /// Status of gRPC.
    pub grpc: GrpcCode,
}

/// Statuses of gRPC that the service uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrpcCode {
    /// The request is invalid, independent of the state of the service.
    InvalidArgument,
    /// The operation took too long.
    DeadlineExceeded,
    /// The item does not exist, or the caller may not see it.
    NotFound,
    /// The item exists already.
    AlreadyExists,
    /// The credentials are valid but lack the right.
    PermissionDenied,
    /// A limit is exceeded.
    ResourceExhausted,
    /// The present state does not allow the operation.
    FailedPrecondition,
    /// The service does not offer the operation.
    Unimplemented,
    /// The service has an internal error.
    Internal,
    /// The service is temporarily unavailable.
    Unavailable,
    /// The request has no valid credentials.
    Unauthenticated,
}

impl GrpcCode {
    /// Returns the number on the wire, the name, and the corresponding HTTP status.
    #[must_use]
    pub const fn wire_values(self) -> (i32, &'static str, u16) {
        match self {
            Self::InvalidArgument => (3, "INVALID_ARGUMENT", 400),
            Self::DeadlineExceeded => (4, "DEADLINE_EXCEEDED", 504),
            Self::NotFound => (5, "NOT_FOUND", 404),
            Self::AlreadyExists => (6, "ALREADY_EXISTS", 409),
            Self::PermissionDenied => (7, "PERMISSION_DENIED", 403),
            Self::ResourceExhausted => (8, "RESOURCE_EXHAUSTED", 429),
            Self::FailedPrecondition => (9, "FAILED_PRECONDITION", 400),
            Self::Unimplemented => (12, "UNIMPLEMENTED", 501),
            Self::Internal => (13, "INTERNAL", 500),
            Self::Unavailable => (14, "UNAVAILABLE", 503),
            Self::Unauthenticated => (16, "UNAUTHENTICATED", 401),
        }
    }
}

/// Returns the numbers of a code.
#[must_use]
#[expect(clippy::too_many_lines, reason = "one table")]
pub const fn wire_codes(code: Code) -> WireCodes {
    use GrpcCode as G;
    let (jsonrpc, http, grpc) = match code {
        Code::MalformedJson => (-32700, 400, G::InvalidArgument),
        Code::InvalidRequest => (-32600, 400, G::InvalidArgument),
        Code::BodyTooLarge => (-32600, 413, G::ResourceExhausted),
        Code::BodyTimeout => (-32600, 408, G::DeadlineExceeded),
        Code::MethodNotAllowed => (-32600, 405, G::Unimplemented),
        Code::MethodUnknown => (-32601, 404, G::Unimplemented),
        Code::PathUnknown | Code::TokenUnknown | Code::AccountUnknown => (-32601, 404, G::NotFound),
        Code::InvalidParams | Code::InputRejected | Code::OverrideRefused => {
            (-32602, 400, G::InvalidArgument)
        }
        Code::InputTooLarge => (-32602, 413, G::ResourceExhausted),
        Code::MessageReused | Code::TokenExists => (-32602, 409, G::AlreadyExists),
        Code::ConfigurationRejected => (-32602, 422, G::InvalidArgument),
        Code::Internal => (-32603, 500, G::Internal),
        Code::ExecutionUnknown => (-32001, 404, G::NotFound),
        Code::InteractionUnknown => (-32069, 404, G::NotFound),
        Code::InteractionClosed | Code::InteractionChanged => (-32070, 409, G::FailedPrecondition),
        Code::AnswerInvalid => (-32602, 400, G::InvalidArgument),
        Code::ScheduleUnknown => (-32064, 404, G::NotFound),
        Code::ScheduleExists | Code::ScheduleFixed => (-32065, 409, G::FailedPrecondition),
        Code::ExecutionEnded => (-32002, 409, G::FailedPrecondition),
        Code::ExecutionUnfinished => (-32062, 409, G::FailedPrecondition),
        Code::NotReplayable | Code::InputSealed => (-32063, 409, G::FailedPrecondition),
        Code::PushUnsupported => (-32003, 400, G::FailedPrecondition),
        Code::Unsupported => (-32004, 400, G::FailedPrecondition),
        Code::ContentType => (-32005, 415, G::InvalidArgument),
        Code::ExtendedCardMissing => (-32007, 404, G::FailedPrecondition),
        Code::ExtensionRequired => (-32008, 400, G::FailedPrecondition),
        Code::VersionUnsupported => (-32009, 400, G::FailedPrecondition),
        Code::QueueFull => (-32050, 503, G::Unavailable),
        Code::QueueTimeout => (-32051, 503, G::Unavailable),
        Code::AgentDisabled => (-32052, 403, G::PermissionDenied),
        Code::AgentUnknown | Code::AgentRemoved => (-32053, 404, G::NotFound),
        Code::AgentQuarantined => (-32054, 503, G::Unavailable),
        Code::AgentUnavailable => (-32067, 503, G::Unavailable),
        Code::TooManyHops => (-32068, 409, G::FailedPrecondition),
        Code::Draining => (-32055, 503, G::Unavailable),
        Code::LedgerUnavailable | Code::AcceptTimeout => (-32056, 503, G::Unavailable),
        Code::Pressure => (-32061, 503, G::Unavailable),
        Code::ServiceUnready => (-32071, 503, G::Unavailable),
        Code::Unauthenticated => (-32058, 401, G::Unauthenticated),
        Code::Forbidden => (-32059, 403, G::PermissionDenied),
        Code::LockedOut | Code::RateLimited => (-32057, 429, G::ResourceExhausted),
        Code::BudgetExceeded => (-32066, 429, G::ResourceExhausted),
        Code::HostUnknown => (-32600, 421, G::InvalidArgument),
        Code::OriginForeign => (-32600, 403, G::PermissionDenied),
        // Outcomes of executions: they appear as the state of a task, not as the error of an answer.
        Code::NotStarted
        | Code::NoResources
        | Code::Exit
        | Code::Killed
        | Code::TransientFailure
        | Code::QuotaExceeded
        | Code::AgentRateLimited
        | Code::AgentOverloaded
        | Code::PermanentFailure
        | Code::NotAuthenticated
        | Code::EndedEarly
        | Code::OutputUnreadable
        | Code::OutputTooLarge
        | Code::Denied
        | Code::ModeRefused
        | Code::SessionNotOpened
        | Code::ToolLimit
        | Code::UnauthorizedTool
        | Code::ArtifactMissing
        | Code::SchemaMismatch
        | Code::CheckFailed
        | Code::EmptyAnswer
        | Code::FailPattern
        | Code::Interactive
        | Code::AnswerMissing
        | Code::Reported
        | Code::MemberFailed
        | Code::MemberUnavailable
        | Code::StepsExhausted
        | Code::ModelUnavailable
        | Code::ModelRefused
        | Code::ModelUnusable
        | Code::Rejected
        | Code::Timeout
        | Code::IdleTimeout
        | Code::ResourcesExceeded
        | Code::StartTimeout
        | Code::Cancelled
        | Code::Interrupted
        | Code::InterruptedNotRun => (-32060, 502, G::Internal),
    };
    WireCodes { jsonrpc, http, grpc }
}

/// Names of the protocol's own errors: the number on JSON-RPC, the reason in details of 1.0, and the type for
/// clients of 0.3 over HTTP.
const ERROR_NAMES: &[(i64, &str, &str)] = &[
    (-32700, "PARSE_ERROR", "JSONParseError"),
    (-32600, "INVALID_REQUEST", "InvalidRequestError"),
    (-32601, "METHOD_NOT_FOUND", "MethodNotFoundError"),
    (-32602, "INVALID_PARAMS", "InvalidParamsError"),
    (-32603, "INTERNAL_ERROR", "InternalError"),
    (-32001, "TASK_NOT_FOUND", "TaskNotFoundError"),
    (-32002, "TASK_NOT_CANCELABLE", "TaskNotCancelableError"),
    (-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED", "PushNotificationNotSupportedError"),
    (-32004, "UNSUPPORTED_OPERATION", "UnsupportedOperationError"),
    (-32005, "CONTENT_TYPE_NOT_SUPPORTED", "ContentTypeNotSupportedError"),
    (-32006, "INVALID_AGENT_RESPONSE", "InvalidAgentResponseError"),
    (-32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED", "ExtendedAgentCardNotConfiguredError"),
    (-32008, "EXTENSION_SUPPORT_REQUIRED", "ExtensionSupportRequiredError"),
    (-32009, "VERSION_NOT_SUPPORTED", "VersionNotSupportedError"),
];

/// Domain of reasons that the protocol defines, followed by the domain of those that this service defines.
const PROTOCOL_DOMAIN: &str = "a2a-protocol.org";
const SERVICE_DOMAIN: &str = "algonius.dev";

/// First and last number of the protocol's own errors.
const PROTOCOL_ERROR_RANGE: (i64, i64) = (-32009, -32001);

fn find_error_names(code: Code) -> Option<&'static (i64, &'static str, &'static str)> {
    let number = wire_codes(code).jsonrpc;
    ERROR_NAMES.iter().find(|(known, _, _)| *known == number)
}

/// Returns the HTTP status of a request that is refused before its operation is dispatched: such a fault concerns
/// HTTP, even if the protocol has an error of its own for it.
#[must_use]
pub const fn http_status_before_dispatch(code: Code) -> u16 {
    wire_codes(code).http
}

/// Returns the HTTP status of a refused operation. In 1.0, the protocol's own errors have the status that goes
/// with their gRPC status.
#[must_use]
pub fn http_status(code: Code, version: ProtocolVersion) -> u16 {
    let WireCodes { jsonrpc, http, grpc } = wire_codes(code);
    // 1.0 maps its own errors through gRPC; errors of this service keep the status that HTTP has for them.
    let is_protocol_error = (PROTOCOL_ERROR_RANGE.0..=PROTOCOL_ERROR_RANGE.1).contains(&jsonrpc);
    if is_protocol_error && version == ProtocolVersion::V1_0 { grpc.wire_values().2 } else { http }
}

/// Returns the reason of a code in details of 1.0 and the domain that defines the reason.
#[must_use]
pub fn reason_and_domain(code: Code) -> (String, &'static str) {
    match find_error_names(code) {
        Some((_, reason, _)) => ((*reason).to_owned(), PROTOCOL_DOMAIN),
        // Reasons of `google.rpc.ErrorInfo` are upper case with underscores by convention.
        None => (code.as_str().to_uppercase().replace('-', "_"), SERVICE_DOMAIN),
    }
}

/// Returns the name of a code for clients of 0.3.
#[must_use]
pub fn error_type_0_3(code: Code) -> Option<&'static str> {
    find_error_names(code).map(|(_, _, name)| *name)
}

/// Returns the one detail of an error of 1.0: a `google.rpc.ErrorInfo`.
#[must_use]
pub fn error_info(failure: &Failure) -> Value {
    let (reason, domain) = reason_and_domain(failure.code);
    json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": domain,
        "metadata": error_details(failure),
    })
}

/// Returns the `data` of an error on JSON-RPC: a list in both versions. 0.3 does not define its form, and the Go SDK,
/// which also supports 0.3, reads only a list.
#[must_use]
pub fn json_rpc_error_data(failure: &Failure) -> Value {
    json!([error_info(failure)])
}

/// Returns the body of an error over HTTP+JSON that is sent with this HTTP status.
#[must_use]
pub fn rest_error_body(failure: &Failure, version: ProtocolVersion, http_status: u16) -> Value {
    let error_object = json!({
        "code": http_status,
        "status": wire_codes(failure.code).grpc.wire_values().1,
        "message": failure.message,
        "details": [error_info(failure)],
    });
    match version {
        // 0.3 does not define the form. Of the official clients one reads `code`, one reads `type`, and the Go SDK
        // reads the fields of 1.0.
        ProtocolVersion::V0_3 => {
            let mut body = json!({
                "code": wire_codes(failure.code).jsonrpc,
                "message": failure.message,
                "data": error_details(failure),
                "error": error_object,
            });
            if let (Some(body), Some(name)) = (body.as_object_mut(), error_type_0_3(failure.code)) {
                body.insert("type".to_owned(), json!(name)); // Only its own errors have one.
            }
            body
        }
        ProtocolVersion::V1_0 => json!({"error": error_object}),
    }
}

/// True if an error concerns the state of the service: the HTTP status of a JSON-RPC answer is then that of the
/// error, so that a reverse proxy can react to it.
#[must_use]
pub const fn is_service_unavailable(code: Code) -> bool {
    wire_codes(code).http == 503
}

/// Returns the details that every protocol adds to the error message.
#[must_use]
pub fn error_details(failure: &Failure) -> Value {
    let mut details = json!({
        "code": failure.code.as_str(),
        "category": failure.category().as_str(),
        "hint": failure.hint(),
        "page": error_page_url(failure.code),
    });
    add_until(failure, &mut details);
    details
}

/// Adds the time at which the error condition ends, if that is known.
fn add_until(failure: &Failure, details: &mut Value) {
    if let (Some(until), Some(details)) = (failure.until, details.as_object_mut()) {
        let until = until.to_rfc3339_opts(SecondsFormat::Secs, true);
        details.insert("until".to_owned(), json!(until));
    }
}

/// Error of a request, as a problem document of RFC 9457.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Error code as a URN.
    #[serde(rename = "type")]
    pub urn: String,
    /// Error code.
    pub title: Code,
    /// The HTTP status.
    pub status: u16,
    /// Description of the error in this request: one clause, without any input, secret or path of the machine.
    pub detail: String,
    /// Stable error code.
    pub code: Code,
    /// Category of the error: who can act on it.
    pub category: Category,
    /// Hint for the reader of the error.
    pub hint: String,
    /// URL of the page about the code.
    pub page: String,
    /// Time at which the error condition ends, if that is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub until: Option<DateTime<Utc>>,
}

/// Returns the body of an HTTP error response, in the form of RFC 9457.
#[must_use]
pub fn problem_document(failure: &Failure) -> Problem {
    Problem {
        urn: format!("urn:algonius:error:{}", failure.code),
        title: failure.code,
        status: wire_codes(failure.code).http,
        detail: failure.message.clone(),
        code: failure.code,
        category: failure.category(),
        hint: failure.hint().to_owned(),
        page: error_page_url(failure.code),
        // Whole seconds, as in the details of the other protocols.
        until: failure.until.map(|until| until.trunc_subsecs(0)),
    }
}

/// Path of the pages about errors; the code follows.
pub const ERROR_PAGES_PATH: &str = "/errors/";

/// Address of the service, which comes before [`ERROR_PAGES_PATH`] in errors. It is global because errors arise in
/// every layer, and changes only when a reload changes `server.public_url`.
#[expect(
    clippy::disallowed_types,
    reason = "it is no data of an actor, and no code panics while it holds it"
)]
static SERVICE_URL: std::sync::RwLock<String> = std::sync::RwLock::new(String::new());

/// Sets the address of the service for the pages that errors name.
pub fn set_service_url(url: &str) {
    // A poisoned lock leaves the old address, which is better than no answer.
    if let Ok(mut service_url) = SERVICE_URL.write() {
        url.trim_end_matches('/').clone_into(&mut service_url);
    }
}

/// Returns the address of the page about a code. It is a path if this process serves nothing.
#[must_use]
pub fn error_page_url(code: Code) -> String {
    error_page_url_for_code_name(code.as_str())
}

/// Returns the address of the page about a code that may be of another release.
#[must_use]
pub fn error_page_url_for_code_name(code_name: &str) -> String {
    let service_url = SERVICE_URL.read().map(|url| url.clone()).unwrap_or_default();
    format!("{service_url}{ERROR_PAGES_PATH}{code_name}")
}

#[cfg(test)]
mod tests;
