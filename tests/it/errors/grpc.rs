//! The same questions over gRPC, in both versions.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use algonius_a2a::grpc::proto::a2a_v1 as v0_3;
use algonius_a2a::grpc::proto::lf_a2a_v1 as v1_0;
use axum::http::Uri;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use prost_types::value::Kind;
use prost_types::{Any, Struct};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tonic::metadata::AsciiMetadataValue;
use tonic::{Request, Status};

use super::error_request::{
    ENV_OVERRIDE, ErrorRequest, HOOK_URL, OVERRIDES_EXTENSION_URI, PARAMETERS_EXTENSION_URI,
    RequestKind, UNKNOWN_PARAM, pretty_json,
};
use crate::harness::within_deadline;

/// Connects to the service, whatever it is called.
#[derive(Clone)]
struct GrpcConnector(SocketAddr);

impl tower::Service<Uri> for GrpcConnector {
    type Response = TokioIo<TcpStream>;
    type Error = std::io::Error;
    type Future = std::pin::Pin<Box<dyn Future<Output = std::io::Result<Self::Response>> + Send>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let address = self.0;
        Box::pin(async move { TcpStream::connect(address).await.map(TokioIo::new) })
    }
}

fn grpc_client(request: &ErrorRequest) -> Client<GrpcConnector, tonic::body::Body> {
    Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build(GrpcConnector(request.client.address))
}

fn tonic_request<T>(request: &ErrorRequest, message: T) -> Request<T> {
    let mut grpc_request = Request::new(message);
    let token = format!("Bearer {}", request.client.token);
    let default_metadata =
        [("authorization", token.as_str()), ("a2a-agent", request.agent.as_str())];
    let further_metadata = request.headers.iter().map(|(name, value)| (*name, value.as_str()));
    for (name, value) in default_metadata.into_iter().chain(further_metadata) {
        let value: AsciiMetadataValue = value.parse().unwrap();
        grpc_request.metadata_mut().append(name, value);
    }
    grpc_request
}

/// Asks in 0.3.
pub(super) async fn send_v0_3(request: &ErrorRequest) -> String {
    let origin = "http://localhost".parse().unwrap();
    let mut client =
        v0_3::a2a_service_client::A2aServiceClient::with_origin(grpc_client(request), origin);
    let result = match &request.kind {
        RequestKind::Get(id) => {
            let task_request =
                v0_3::GetTaskRequest { name: format!("tasks/{id}"), history_length: 0 };
            within_deadline("a task", client.get_task(tonic_request(request, task_request))).await
        }
        RequestKind::Cancel(id) => {
            let task_request = v0_3::CancelTaskRequest { name: format!("tasks/{id}") };
            within_deadline("a task", client.cancel_task(tonic_request(request, task_request)))
                .await
        }
        _ => {
            let response = within_deadline(
                "an answer",
                client.send_message(tonic_request(request, send_message_request_0_3(request))),
            )
            .await;
            response.map(|answer| {
                answer.map(|answer| match answer.payload {
                    Some(v0_3::send_message_response::Payload::Task(task)) => task,
                    other => panic!("no task: {other:?}"),
                })
            })
        }
    };
    match result {
        Err(status) => status_text(&status),
        Ok(task) => {
            let status = task.into_inner().status.unwrap();
            let state = status.state().as_str_name();
            let update = status.update.clone().unwrap_or_default();
            let text = update.content.first().and_then(|part| match &part.part {
                Some(v0_3::part::Part::Text(text)) => Some(text.clone()),
                _ => None,
            });
            task_text(state, text, update.metadata.as_ref())
        }
    }
}

/// Asks in 1.0.
pub(super) async fn send_v1_0(request: &ErrorRequest) -> String {
    let origin = "http://localhost".parse().unwrap();
    let mut client =
        v1_0::a2a_service_client::A2aServiceClient::with_origin(grpc_client(request), origin);
    let tenant = request.agent.clone();
    let result = match &request.kind {
        RequestKind::Get(id) => {
            let task_request =
                v1_0::GetTaskRequest { tenant, id: id.clone(), history_length: None };
            within_deadline("a task", client.get_task(tonic_request(request, task_request))).await
        }
        RequestKind::Cancel(id) => {
            let task_request = v1_0::CancelTaskRequest { tenant, id: id.clone(), metadata: None };
            within_deadline("a task", client.cancel_task(tonic_request(request, task_request)))
                .await
        }
        _ => {
            let response = within_deadline(
                "an answer",
                client.send_message(tonic_request(request, send_message_request_1_0(request))),
            )
            .await;
            response.map(|answer| {
                answer.map(|answer| match answer.payload {
                    Some(v1_0::send_message_response::Payload::Task(task)) => task,
                    other => panic!("no task: {other:?}"),
                })
            })
        }
    };
    match result {
        Err(status) => status_text(&status),
        Ok(task) => {
            let status = task.into_inner().status.unwrap();
            let state = status.state().as_str_name();
            let message = status.message.clone().unwrap_or_default();
            let text = message.parts.first().and_then(|part| match &part.content {
                Some(v1_0::part::Content::Text(text)) => Some(text.clone()),
                _ => None,
            });
            task_text(state, text, message.metadata.as_ref())
        }
    }
}

fn send_message_request_0_3(request: &ErrorRequest) -> v0_3::SendMessageRequest {
    let Some(text) = request.message_text() else { return v0_3::SendMessageRequest::default() };
    let part =
        v0_3::Part { part: Some(v0_3::part::Part::Text(text.to_owned())), ..Default::default() };
    let hook = v0_3::PushNotificationConfig { url: HOOK_URL.to_owned(), ..Default::default() };
    v0_3::SendMessageRequest {
        request: Some(v0_3::Message {
            message_id: request.fixed_or_new_message_id(),
            role: v0_3::Role::User.into(),
            content: vec![part],
            metadata: override_metadata(request),
            ..Default::default()
        }),
        configuration: matches!(request.kind, RequestKind::SendWithPushConfig(_)).then(|| {
            v0_3::SendMessageConfiguration {
                push_notification: Some(hook),
                blocking: true,
                ..Default::default()
            }
        }),
        ..Default::default()
    }
}

fn send_message_request_1_0(request: &ErrorRequest) -> v1_0::SendMessageRequest {
    let tenant = request.agent.clone();
    let Some(text) = request.message_text() else {
        return v1_0::SendMessageRequest { tenant, ..Default::default() };
    };
    let content = Some(v1_0::part::Content::Text(text.to_owned()));
    let hook = v1_0::TaskPushNotificationConfig { url: HOOK_URL.to_owned(), ..Default::default() };
    v1_0::SendMessageRequest {
        tenant,
        message: Some(v1_0::Message {
            message_id: request.fixed_or_new_message_id(),
            role: v1_0::Role::User.into(),
            parts: vec![v1_0::Part { content, ..Default::default() }],
            metadata: override_metadata(request),
            ..Default::default()
        }),
        configuration: matches!(request.kind, RequestKind::SendWithPushConfig(_)).then(|| {
            v1_0::SendMessageConfiguration {
                task_push_notification_config: Some(hook),
                ..Default::default()
            }
        }),
        ..Default::default()
    }
}

/// The variable or the parameter that a message chooses, as metadata.
fn override_metadata(request: &ErrorRequest) -> Option<Struct> {
    let struct_with_field = |name: &str, kind| {
        let value = prost_types::Value { kind: Some(kind) };
        Struct { fields: BTreeMap::from([(name.to_owned(), value)]) }
    };
    let entry =
        |(name, text): (&str, &str)| struct_with_field(name, Kind::StringValue(text.to_owned()));
    match request.kind {
        RequestKind::SendWithOverride(_) => {
            let variable = struct_with_field("environment", Kind::StructValue(entry(ENV_OVERRIDE)));
            Some(struct_with_field(OVERRIDES_EXTENSION_URI, Kind::StructValue(variable)))
        }
        RequestKind::SendWithParam(_) => {
            let param = Kind::StructValue(entry(UNKNOWN_PARAM));
            Some(struct_with_field(PARAMETERS_EXTENSION_URI, param))
        }
        _ => None,
    }
}

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

/// A status that says no, with its details.
fn status_text(status: &Status) -> String {
    let rpc_status = RpcStatus::decode(status.details()).unwrap();
    let infos = rpc_status.details.iter().map(|detail| ErrorInfo::decode(&*detail.value).unwrap());
    let infos: Vec<Value> = infos
        .map(|ErrorInfo { reason, domain, metadata }| {
            json!({"reason": reason, "domain": domain, "metadata": metadata})
        })
        .collect();
    format!("{:?}: {}\n{}", status.code(), status.message(), pretty_json(&json!(infos)))
}

/// How a task stands.
fn task_text(state: &str, text: Option<String>, metadata: Option<&Struct>) -> String {
    let fields = metadata.into_iter().flat_map(|metadata| &metadata.fields);
    let metadata: BTreeMap<_, _> = fields
        .map(|(name, value)| match &value.kind {
            Some(Kind::StringValue(text)) => (name, text.clone()),
            other => (name, format!("{other:?}")),
        })
        .collect();
    format!("Ok\n{}", pretty_json(&json!({"state": state, "text": text, "metadata": metadata})))
}
