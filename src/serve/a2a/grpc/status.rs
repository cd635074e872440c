//! Conversion of a failure into a gRPC status, with `google.rpc.ErrorInfo` for programs.

use std::collections::BTreeMap;

use algonius_a2a::problem;
use algonius_actors::model::failure::Failure;
use prost::Message as _;
use prost_types::Any;
use serde_json::Value;
use tonic::{Code, Status};

/// Message `google.rpc.Status`.
#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

/// Message `google.rpc.ErrorInfo`.
#[derive(Clone, PartialEq, prost::Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(string, tag = "2")]
    domain: String,
    #[prost(btree_map = "string, string", tag = "3")]
    metadata: BTreeMap<String, String>,
}

/// Converts a failure into a status of 1.0.
pub(super) fn v1_status(failure: &Failure) -> Status {
    status_with_message(failure, failure.message.clone())
}

/// Converts a failure into a status of 0.3. That version defines no details: its SDKs identify an error by the name
/// before the message.
pub(super) fn v0_3_status(failure: &Failure) -> Status {
    match problem::error_type_0_3(failure.code) {
        Some(name) => status_with_message(failure, format!("{name}: {}", failure.message)),
        None => v1_status(failure),
    }
}

fn status_with_message(failure: &Failure, message: String) -> Status {
    let (code, _, _) = problem::wire_codes(failure.code).grpc.wire_values();
    let info = Any {
        type_url: "type.googleapis.com/google.rpc.ErrorInfo".to_owned(),
        value: error_info(failure).encode_to_vec(),
    };
    let details = RpcStatus { code, message: message.clone(), details: vec![info] };
    Status::with_details(Code::from(code), message, details.encode_to_vec().into())
}

fn error_info(failure: &Failure) -> ErrorInfo {
    let (reason, domain) = problem::reason_and_domain(failure.code);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let details = problem::error_details(failure);
    let fields = details.as_object().into_iter().flatten();
    let metadata = fields.map(|(name, value)| (name.clone(), text(value))).collect();
    ErrorInfo { reason, domain: domain.to_owned(), metadata }
}

#[cfg(test)]
mod tests {
    use algonius_actors::model::code::Code as ErrorCode;

    use super::*;

    #[test]
    fn error_details_state_the_reason() {
        let status = v1_status(&Failure::new(ErrorCode::ExecutionUnknown, "there is no such task"));
        let details = RpcStatus::decode(status.details()).expect("a status");
        let info = ErrorInfo::decode(&*details.details[0].value).expect("its details");
        assert_eq!((details.code, status.message()), (5, "there is no such task"));
        assert_eq!((&*info.reason, &*info.domain), ("TASK_NOT_FOUND", "a2a-protocol.org"));
        assert_eq!(info.metadata["code"], "execution-unknown");
        let status =
            v0_3_status(&Failure::new(ErrorCode::ExecutionUnknown, "there is no such task"));
        assert_eq!(status.message(), "TaskNotFoundError: there is no such task");
    }
}
