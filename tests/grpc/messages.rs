//! What is sent over gRPC and what is read from the answers, in both versions.

use algonius_a2a::grpc::proto::a2a_v1 as old;
use algonius_a2a::grpc::proto::lf_a2a_v1 as new;
use prost::Message as _;
use tonic::Status;

use crate::harness::{GrpcHarness, with_metadata, within_step_timeout};

pub(crate) fn message_request_0_3(text: &str) -> old::SendMessageRequest {
    let part = old::Part { part: Some(old::part::Part::Text(text.to_owned())), metadata: None };
    old::SendMessageRequest {
        request: Some(old::Message {
            message_id: uuid::Uuid::new_v4().to_string(),
            role: old::Role::User.into(),
            content: vec![part],
            ..old::Message::default()
        }),
        ..old::SendMessageRequest::default()
    }
}

pub(crate) fn message_request_1_0(tenant: &str, text: &str) -> new::SendMessageRequest {
    let content = Some(new::part::Content::Text(text.to_owned()));
    new::SendMessageRequest {
        tenant: tenant.to_owned(),
        message: Some(new::Message {
            message_id: uuid::Uuid::new_v4().to_string(),
            role: new::Role::User.into(),
            parts: vec![new::Part { content, ..new::Part::default() }],
            ..new::Message::default()
        }),
        ..new::SendMessageRequest::default()
    }
}

pub(crate) fn task_0_3(answer: old::SendMessageResponse) -> old::Task {
    match answer.payload {
        Some(old::send_message_response::Payload::Task(task)) => task,
        other => panic!("not a task: {other:?}"),
    }
}

pub(crate) fn task_1_0(answer: new::SendMessageResponse) -> new::Task {
    match answer.payload {
        Some(new::send_message_response::Payload::Task(task)) => task,
        other => panic!("not a task: {other:?}"),
    }
}

pub(crate) fn answer_text_0_3(task: &old::Task) -> &str {
    match &task.artifacts[0].parts[0].part {
        Some(old::part::Part::Text(text)) => text,
        other => panic!("not a text: {other:?}"),
    }
}

pub(crate) fn answer_text_1_0(task: &new::Task) -> &str {
    match &task.artifacts[0].parts[0].content {
        Some(new::part::Content::Text(text)) => text,
        other => panic!("not a text: {other:?}"),
    }
}

pub(crate) async fn send_and_read_text_or_code(
    grpc: &GrpcHarness,
    host: &str,
    tenant: &str,
    agent: Option<&str>,
) -> String {
    let mut call = grpc.authorized_request(message_request_1_0(tenant, "you"));
    if let Some(agent) = agent {
        call = with_metadata(call, "a2a-agent", agent);
    }
    match within_step_timeout(grpc.client_of_1_0(host).send_message(call)).await {
        Ok(answer) => answer_text_1_0(&task_1_0(answer.into_inner())).to_owned(),
        Err(status) => format!("{:?}", status.code()),
    }
}

/// The reason in the first detail: `google.rpc.Status` holds `Any`, which holds an `ErrorInfo`.
pub(crate) fn error_reason(status: &Status) -> String {
    #[derive(Clone, PartialEq, prost::Message)]
    struct StatusDetails {
        #[prost(message, repeated, tag = "3")]
        details: Vec<prost_types::Any>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    struct ErrorInfoReason {
        #[prost(string, tag = "1")]
        reason: String,
    }
    let status_details = StatusDetails::decode(status.details()).expect("details");
    ErrorInfoReason::decode(&*status_details.details[0].value).expect("a reason").reason
}
