//! A failure as a status of gRPC, with `google.rpc.ErrorInfo` for programs.

use std::collections::BTreeMap;

use algonius_actors::model::code::Code as Kind;
use algonius_actors::model::failure::Failure;
use prost::Message as _;
use prost_types::Any;
use serde_json::Value;
use tonic::{Code, Status};

use crate::wire::problem::{self, Numbers};

/// Who gives the protocol's own reasons.
const PROTOCOL: &str = "a2a-protocol.org";

/// Who gives ours.
const OURS: &str = "algonius.dev";

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

/// `google.rpc.ErrorInfo`.
#[derive(Clone, PartialEq, prost::Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(string, tag = "2")]
    domain: String,
    #[prost(btree_map = "string, string", tag = "3")]
    metadata: BTreeMap<String, String>,
}

/// A failure as a status.
pub(super) fn of(failure: &Failure) -> Status {
    with_message(failure, failure.message.clone())
}

/// A failure as a status of 0.3, which has no details: its SDKs know an error by the name before
/// the sentence.
pub(super) fn of_old(failure: &Failure) -> Status {
    match protocol_names(failure.code) {
        Some((_, name)) => with_message(failure, format!("{name}: {}", failure.message)),
        None => of(failure),
    }
}

fn with_message(failure: &Failure, message: String) -> Status {
    let code = code(problem::numbers(failure.code));
    let info = info(failure).encode_to_vec();
    let details = RpcStatus {
        code: code.into(),
        message: message.clone(),
        details: vec![Any {
            type_url: "type.googleapis.com/google.rpc.ErrorInfo".to_owned(),
            value: info,
        }],
    };
    Status::with_details(code, message, details.encode_to_vec().into())
}

/// The number of gRPC, from the other two: the map of A2A 1.0.1, and what gRPC itself means by its
/// numbers for what A2A does not know.
const fn code(numbers: Numbers) -> Code {
    match (numbers.jsonrpc, numbers.http) {
        (-32001 | -32053, _) => Code::NotFound,
        (-32004..=-32002 | -32009..=-32007 | -32052, _) => Code::FailedPrecondition,
        (-32005, _) | (-32700 | -32600 | -32602, 400) => Code::InvalidArgument,
        (_, 401) => Code::Unauthenticated,
        (_, 403 | 421) => Code::PermissionDenied,
        (_, 404 | 405) => Code::Unimplemented,
        (_, 408) => Code::DeadlineExceeded,
        (_, 409) => Code::AlreadyExists,
        (_, 413 | 429) => Code::ResourceExhausted,
        (_, 503) => Code::Unavailable,
        _ => Code::Internal,
    }
}

fn info(failure: &Failure) -> ErrorInfo {
    let (reason, domain) = match protocol_names(failure.code) {
        Some((reason, _)) => (reason.to_owned(), PROTOCOL),
        None => (failure.code.as_str().replace('-', "_").to_uppercase(), OURS),
    };
    let details = match problem::details(failure) {
        Value::Object(details) => details,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            serde_json::Map::new()
        }
    };
    let metadata = details.into_iter().map(|(name, value)| match value {
        Value::String(text) => (name, text),
        value @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_)) => (name, value.to_string()),
    });
    ErrorInfo { reason, domain: domain.to_owned(), metadata: metadata.collect() }
}

/// What the protocol calls its own errors: the reason of 1.0 and the name of 0.3.
const fn protocol_names(kind: Kind) -> Option<(&'static str, &'static str)> {
    match problem::numbers(kind).jsonrpc {
        -32001 => Some(("TASK_NOT_FOUND", "TaskNotFoundError")),
        -32002 => Some(("TASK_NOT_CANCELABLE", "TaskNotCancelableError")),
        -32003 => Some(("PUSH_NOTIFICATION_NOT_SUPPORTED", "PushNotificationNotSupportedError")),
        -32004 => Some(("UNSUPPORTED_OPERATION", "UnsupportedOperationError")),
        -32005 => Some(("CONTENT_TYPE_NOT_SUPPORTED", "ContentTypeNotSupportedError")),
        -32006 => Some(("INVALID_AGENT_RESPONSE", "InvalidAgentResponseError")),
        -32007 => {
            Some(("EXTENDED_AGENT_CARD_NOT_CONFIGURED", "ExtendedAgentCardNotConfiguredError"))
        }
        -32008 => Some(("EXTENSION_SUPPORT_REQUIRED", "ExtensionSupportRequiredError")),
        -32009 => Some(("VERSION_NOT_SUPPORTED", "VersionNotSupportedError")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_caller_did_wrong_is_never_told_as_our_fault() {
        for kind in Kind::ALL.iter().copied() {
            let numbers = problem::numbers(kind);
            if (400..500).contains(&numbers.http) {
                assert_ne!(code(numbers), Code::Internal, "{kind}");
            }
        }
    }

    #[test]
    fn the_map_of_the_protocol_holds() {
        for (kind, expected) in [
            (Kind::ExecutionUnknown, Code::NotFound),
            (Kind::ExecutionEnded, Code::FailedPrecondition),
            (Kind::PushUnsupported, Code::FailedPrecondition),
            (Kind::Unsupported, Code::FailedPrecondition),
            (Kind::VersionUnsupported, Code::FailedPrecondition),
            (Kind::ContentType, Code::InvalidArgument),
            (Kind::InvalidParams, Code::InvalidArgument),
            (Kind::Internal, Code::Internal),
            (Kind::Unauthenticated, Code::Unauthenticated),
            (Kind::Forbidden, Code::PermissionDenied),
            (Kind::AgentUnknown, Code::NotFound),
            (Kind::QueueFull, Code::Unavailable),
            (Kind::BodyTooLarge, Code::ResourceExhausted),
        ] {
            assert_eq!(code(problem::numbers(kind)), expected, "{kind}");
        }
    }

    #[test]
    fn details_tell_programs_the_reason() {
        let status = of(&Failure::new(Kind::ExecutionUnknown, "there is no such task"));
        let details = RpcStatus::decode(status.details()).expect("a status");
        let info = ErrorInfo::decode(&*details.details[0].value).expect("its details");
        assert_eq!((details.code, status.message()), (5, "there is no such task"));
        assert_eq!((&*info.reason, &*info.domain), ("TASK_NOT_FOUND", PROTOCOL));
        assert_eq!(info.metadata["code"], "execution-unknown");
        let status = of_old(&Failure::new(Kind::ExecutionUnknown, "there is no such task"));
        assert_eq!(status.message(), "TaskNotFoundError: there is no such task");
    }
}
