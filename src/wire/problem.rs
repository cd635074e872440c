//! The one table of errors on the wire: which number each code has in each protocol.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use chrono::SecondsFormat;
use serde_json::{Value, json};

use super::a2a::v1::Version;

/// The numbers of one code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// JSON-RPC: the protocol's own from -32001, ours from -32050.
    pub jsonrpc: i64,
    /// HTTP status, where the error is the whole answer.
    pub http: u16,
    /// gRPC status.
    pub grpc: Grpc,
}

/// The statuses of gRPC that are in use here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grpc {
    /// The request is wrong, whatever the state of the service.
    InvalidArgument,
    /// It took too long.
    DeadlineExceeded,
    /// It is not there, or not for this caller.
    NotFound,
    /// It is there already.
    AlreadyExists,
    /// Valid credentials without the right.
    PermissionDenied,
    /// Too much of something.
    ResourceExhausted,
    /// Not in the present state.
    FailedPrecondition,
    /// Not offered here.
    Unimplemented,
    /// A fault of the service.
    Internal,
    /// Not now.
    Unavailable,
    /// No valid credentials.
    Unauthenticated,
}

impl Grpc {
    /// Its number on the wire, its name, and the HTTP status that means the same.
    #[must_use]
    pub const fn told(self) -> (i32, &'static str, u16) {
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

/// The numbers of a code.
#[must_use]
#[expect(clippy::too_many_lines, reason = "one table, a line for each number")]
pub const fn numbers(code: Code) -> Numbers {
    use Grpc as G;
    let (jsonrpc, http, grpc) = match code {
        Code::MalformedJson => (-32700, 400, G::InvalidArgument),
        Code::InvalidRequest => (-32600, 400, G::InvalidArgument),
        Code::BodyTooLarge => (-32600, 413, G::ResourceExhausted),
        Code::BodyTimeout => (-32600, 408, G::DeadlineExceeded),
        Code::MethodNotAllowed => (-32600, 405, G::Unimplemented),
        Code::MethodUnknown | Code::PathUnknown | Code::TokenUnknown => (-32601, 404, G::NotFound),
        Code::InvalidParams | Code::InputRejected | Code::OverrideRefused => {
            (-32602, 400, G::InvalidArgument)
        }
        Code::InputTooLarge => (-32602, 413, G::ResourceExhausted),
        Code::MessageReused | Code::TokenExists => (-32602, 409, G::AlreadyExists),
        Code::ConfigurationRejected => (-32602, 422, G::InvalidArgument),
        Code::Internal => (-32603, 500, G::Internal),
        Code::ExecutionUnknown => (-32001, 404, G::NotFound),
        Code::ScheduleUnknown => (-32064, 404, G::NotFound),
        Code::ScheduleExists | Code::ScheduleFixed => (-32065, 409, G::FailedPrecondition),
        Code::ExecutionEnded => (-32002, 409, G::FailedPrecondition),
        Code::ExecutionUnfinished => (-32062, 409, G::FailedPrecondition),
        Code::NotReplayable => (-32063, 409, G::FailedPrecondition),
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
        Code::Draining => (-32055, 503, G::Unavailable),
        Code::LedgerUnavailable => (-32056, 503, G::Unavailable),
        Code::Pressure => (-32061, 503, G::Unavailable),
        Code::Unauthenticated => (-32058, 401, G::Unauthenticated),
        Code::Forbidden => (-32059, 403, G::PermissionDenied),
        Code::LockedOut | Code::RateLimited => (-32057, 429, G::ResourceExhausted),
        Code::BudgetExceeded => (-32066, 429, G::ResourceExhausted),
        Code::HostUnknown => (-32600, 421, G::InvalidArgument),
        Code::OriginForeign => (-32600, 403, G::PermissionDenied),
        // Ends of executions. They are told as the state of a task, not as an answer's error.
        Code::NotStarted
        | Code::NoResources
        | Code::Exit
        | Code::Killed
        | Code::TransientFailure
        | Code::QuotaExceeded
        | Code::EmptyAnswer
        | Code::FailPattern
        | Code::Interactive
        | Code::AnswerMissing
        | Code::Reported
        | Code::Rejected
        | Code::Timeout
        | Code::IdleTimeout
        | Code::ResourcesExceeded
        | Code::StartTimeout
        | Code::Cancelled
        | Code::Interrupted
        | Code::InterruptedNotRun => (-32060, 502, G::Internal),
    };
    Numbers { jsonrpc, http, grpc }
}

/// What the protocol calls its own errors: the number on JSON-RPC, the reason in details of 1.0,
/// and the type by which clients of 0.3 over HTTP know it.
const NAMES: &[(i64, &str, &str)] = &[
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

/// Where reasons of the protocol are defined, and where ours are.
const DOMAIN: &str = "a2a-protocol.org";
const OUR_DOMAIN: &str = "algonius.dev";

/// The first and the last number that the protocol gives to errors of its own.
const OWN: (i64, i64) = (-32009, -32001);

fn named(code: Code) -> Option<&'static (i64, &'static str, &'static str)> {
    let number = numbers(code).jsonrpc;
    NAMES.iter().find(|(known, _, _)| *known == number)
}

/// The HTTP status of a code in answers of a version. In 1.0, the protocol's own errors have the
/// status that goes with their gRPC status.
#[must_use]
pub fn http(code: Code, version: Version) -> u16 {
    let Numbers { jsonrpc, http, grpc } = numbers(code);
    let is_own = (OWN.0..=OWN.1).contains(&jsonrpc);
    if is_own && version == Version::V1_0 { grpc.told().2 } else { http }
}

/// The reason of a code in details of 1.0, and where that reason is defined.
#[must_use]
pub fn reason(code: Code) -> (String, &'static str) {
    match named(code) {
        Some((_, reason, _)) => ((*reason).to_owned(), DOMAIN),
        None => (code.as_str().to_uppercase().replace('-', "_"), OUR_DOMAIN),
    }
}

/// The name by which clients of 0.3 know a code.
#[must_use]
pub fn name(code: Code) -> Option<&'static str> {
    named(code).map(|(_, _, name)| *name)
}

/// The one detail of an error of 1.0: a `google.rpc.ErrorInfo`.
#[must_use]
pub fn info(failure: &Failure) -> Value {
    let (reason, domain) = reason(failure.code);
    json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": domain,
        "metadata": details(failure),
    })
}

/// What an error on JSON-RPC has as its `data`.
#[must_use]
pub fn data(failure: &Failure, version: Version) -> Value {
    match version {
        Version::V0_3 => details(failure),
        Version::V1_0 => json!([info(failure)]),
    }
}

/// A whole answer of A2A over HTTP.
#[must_use]
pub fn rest(failure: &Failure, version: Version) -> Value {
    match version {
        // 0.3 leaves it open. One official client reads `code`, another reads `type`.
        Version::V0_3 => {
            let mut told = json!({
                "code": numbers(failure.code).jsonrpc,
                "message": failure.message,
                "data": details(failure),
            });
            if let (Some(told), Some(name)) = (told.as_object_mut(), name(failure.code)) {
                told.insert("type".to_owned(), json!(name)); // Only its own errors have one.
            }
            told
        }
        Version::V1_0 => json!({"error": {
            "code": http(failure.code, version),
            "status": numbers(failure.code).grpc.told().1,
            "message": failure.message,
            "details": [info(failure)],
        }}),
    }
}

/// Whether a refusal is about the service's state, so that a JSON-RPC answer has the HTTP status
/// too and a proxy in front can do its part.
#[must_use]
pub const fn is_unavailable(code: Code) -> bool {
    numbers(code).http == 503
}

/// What every protocol tells beside the sentence.
#[must_use]
pub fn details(failure: &Failure) -> Value {
    let mut details = json!({
        "code": failure.code.as_str(),
        "category": failure.category().as_str(),
        "hint": failure.hint(),
        "page": page(failure.code),
    });
    tell_until(failure, &mut details);
    details
}

/// Until when it lasts, where that is known.
fn tell_until(failure: &Failure, told: &mut Value) {
    if let (Some(until), Some(told)) = (failure.until, told.as_object_mut()) {
        let until = until.to_rfc3339_opts(SecondsFormat::Secs, true);
        told.insert("until".to_owned(), json!(until));
    }
}

/// A whole HTTP answer, in the form of RFC 9457.
#[must_use]
pub fn document(failure: &Failure) -> Value {
    let mut document = json!({
        "type": format!("urn:algonius:error:{}", failure.code),
        "title": failure.code.as_str(),
        "status": numbers(failure.code).http,
        "detail": failure.message,
        "code": failure.code.as_str(),
        "category": failure.category().as_str(),
        "hint": failure.hint(),
        "page": page(failure.code),
    });
    tell_until(failure, &mut document);
    document
}

fn page(code: Code) -> String {
    format!("docs/errors/{code}.md")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_input_never_answers_with_a_server_error() {
        use algonius_actors::model::code::Category;
        for code in Code::ALL.iter().copied() {
            let Numbers { jsonrpc, http, grpc: _ } = numbers(code);
            if code.category() == Category::Permanent && jsonrpc != -32060 {
                assert!((400..500).contains(&http), "{code} answers {http}");
            }
        }
    }

    #[test]
    fn the_protocols_own_errors_have_the_status_of_its_map() {
        let told = |code| {
            let failure = Failure::new(code, "it is so");
            let error = &rest(&failure, Version::V1_0)["error"];
            (error["code"].as_u64(), error["status"].as_str().map(str::to_owned))
        };
        let of = |number, word: &str| (Some(number), Some(word.to_owned()));
        assert_eq!(told(Code::ExecutionUnknown), of(404, "NOT_FOUND"));
        assert_eq!(told(Code::ContentType), of(400, "INVALID_ARGUMENT"));
        for code in Code::ALL.iter().copied() {
            let is_other = [-32009, -32008, -32007, -32004, -32003, -32002];
            if is_other.contains(&numbers(code).jsonrpc) {
                assert_eq!(told(code), of(400, "FAILED_PRECONDITION"), "{code}");
            }
        }
    }

    #[test]
    fn an_error_says_whose_reason_it_has() {
        let info = |code| info(&Failure::new(code, "it is so"));
        let unknown = info(Code::ExecutionUnknown);
        assert_eq!(unknown["@type"], "type.googleapis.com/google.rpc.ErrorInfo");
        assert_eq!(
            (&unknown["reason"], &unknown["domain"]),
            (&json!("TASK_NOT_FOUND"), &json!(DOMAIN))
        );
        assert_eq!(unknown["metadata"]["code"], "execution-unknown");
        let full = info(Code::QueueFull);
        assert_eq!((&full["reason"], &full["domain"]), (&json!("QUEUE_FULL"), &json!(OUR_DOMAIN)));
        for code in Code::ALL.iter().copied() {
            let all = info(code);
            let texts = all["metadata"].as_object().expect("an object").values();
            assert!(texts.into_iter().all(Value::is_string), "{code}");
        }
    }

    #[test]
    fn clients_of_0_3_find_the_number_and_the_type_they_look_for() {
        let told = rest(&Failure::new(Code::ExecutionEnded, "it is so"), Version::V0_3);
        assert_eq!(told["code"], -32002);
        assert_eq!(told["type"], "TaskNotCancelableError");
        assert_eq!(told["message"], "it is so");
        assert_eq!(told["data"]["code"], "execution-ended");
    }

    #[test]
    fn numbers_of_our_own_stay_clear_of_the_protocols() {
        for code in Code::ALL.iter().copied() {
            let number = numbers(code).jsonrpc;
            let standard =
                (-32700..=-32600).contains(&number) || (-32009..=-32001).contains(&number);
            assert!(standard || (-32069..=-32050).contains(&number), "{code} is {number}");
        }
    }
}
