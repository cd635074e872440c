//! The service of A2A 1.0.

use algonius_a2a::A2aMethod;
use algonius_a2a::grpc::proto::lf_a2a_v1 as pb;
use algonius_a2a::grpc::v1::{read, write};
use algonius_a2a::v1::TaskQuery;
use algonius_actors::model::access::endpoint_config::ProtocolVersion;
use tonic::Request;

use super::interceptor::GrpcCallHead;
use super::{GrpcResponse, GrpcStream, status, to_grpc_response, to_grpc_stream};
use crate::serve::AppState;
use crate::serve::a2a::card;
use crate::serve::a2a::operations::push::{push_delete, push_get, push_list, push_set};
use crate::serve::a2a::operations::{self, SentMessage};

/// Service for calls of 1.0.
pub(super) struct GrpcServiceV1 {
    app: AppState,
}

impl GrpcServiceV1 {
    pub(super) const fn new(app: AppState) -> Self {
        Self { app }
    }
}

#[tonic::async_trait]
impl pb::a2a_service_server::A2aService for GrpcServiceV1 {
    type SendStreamingMessageStream = GrpcStream<pb::StreamResponse>;
    type SubscribeToTaskStream = GrpcStream<pb::StreamResponse>;

    async fn send_message(
        &self,
        request: Request<pb::SendMessageRequest>,
    ) -> GrpcResponse<pb::SendMessageResponse> {
        to_grpc_response(
            status::v1_status,
            Box::pin(async {
                let (call, message) =
                    GrpcCallHead::split_and_check_version(request, ProtocolVersion::V1_0)?;
                let metadata = call.transport_metadata()?;
                let (caller, agent) = call
                    .resolve_agent_and_authorize(&self.app, &message.tenant, A2aMethod::Send)
                    .await?;
                let send = read::send_request(message)?;
                let sent_message =
                    SentMessage { version: ProtocolVersion::V1_0, metadata, request: send };
                operations::send(&self.app, &caller, &agent, sent_message)
                    .await
                    .and_then(write::send_response)
            }),
        )
        .await
    }

    async fn send_streaming_message(
        &self,
        request: Request<pb::SendMessageRequest>,
    ) -> GrpcResponse<Self::SendStreamingMessageStream> {
        to_grpc_response(
            status::v1_status,
            Box::pin(async {
                let (call, message) =
                    GrpcCallHead::split_and_check_version(request, ProtocolVersion::V1_0)?;
                let metadata = call.transport_metadata()?;
                let (caller, agent) = call
                    .resolve_agent_and_authorize(&self.app, &message.tenant, A2aMethod::Stream)
                    .await?;
                let send = read::send_request(message)?;
                let sent_message =
                    SentMessage { version: ProtocolVersion::V1_0, metadata, request: send };
                let events = operations::stream(&self.app, &caller, &agent, sent_message).await?;
                Ok(to_grpc_stream(status::v1_status, events, write::event))
            }),
        )
        .await
    }

    async fn get_task(&self, request: Request<pb::GetTaskRequest>) -> GrpcResponse<pb::Task> {
        to_grpc_response(status::v1_status, async {
            let (call, message) =
                GrpcCallHead::split_and_check_version(request, ProtocolVersion::V1_0)?;
            let (caller, agent) = call
                .resolve_agent_and_authorize(&self.app, &message.tenant, A2aMethod::Get)
                .await?;
            let history_length = read::read_history_length(message.history_length)?;
            let query = TaskQuery { id: message.id, history_length };
            operations::get(&self.app, &caller, &agent, query).await.and_then(write::task)
        })
        .await
    }

    async fn list_tasks(
        &self,
        request: Request<pb::ListTasksRequest>,
    ) -> GrpcResponse<pb::ListTasksResponse> {
        to_grpc_response(status::v1_status, async {
            let (call, message) =
                GrpcCallHead::split_and_check_version(request, ProtocolVersion::V1_0)?;
            let (caller, agent) = call
                .resolve_agent_and_authorize(&self.app, &message.tenant, A2aMethod::List)
                .await?;
            let list = read::list_request(message)?;
            operations::list(&self.app, &caller, &agent, list).await.and_then(write::page)
        })
        .await
    }

    async fn cancel_task(&self, request: Request<pb::CancelTaskRequest>) -> GrpcResponse<pb::Task> {
        to_grpc_response(status::v1_status, async {
            let (call, message) =
                GrpcCallHead::split_and_check_version(request, ProtocolVersion::V1_0)?;
            let (caller, agent) = call
                .resolve_agent_and_authorize(&self.app, &message.tenant, A2aMethod::Cancel)
                .await?;
            operations::cancel(&self.app, &caller, &agent, &message.id).await.and_then(write::task)
        })
        .await
    }

    async fn subscribe_to_task(
        &self,
        request: Request<pb::SubscribeToTaskRequest>,
    ) -> GrpcResponse<Self::SubscribeToTaskStream> {
        to_grpc_response(status::v1_status, async {
            let (call, message) =
                GrpcCallHead::split_and_check_version(request, ProtocolVersion::V1_0)?;
            let metadata = call.transport_metadata()?;
            let (caller, agent) = call
                .resolve_agent_and_authorize(&self.app, &message.tenant, A2aMethod::Subscribe)
                .await?;
            let version_and_metadata = (ProtocolVersion::V1_0, &metadata);
            let events = operations::subscribe(
                &self.app,
                &caller,
                &agent,
                &message.id,
                version_and_metadata,
            )
            .await?;
            Ok(to_grpc_stream(status::v1_status, events, write::event))
        })
        .await
    }

    async fn create_task_push_notification_config(
        &self,
        request: Request<pb::TaskPushNotificationConfig>,
    ) -> GrpcResponse<pb::TaskPushNotificationConfig> {
        to_grpc_response(status::v1_status, async {
            let (call, message) =
                GrpcCallHead::split_and_check_version(request, ProtocolVersion::V1_0)?;
            let (caller, agent) = call
                .resolve_agent_and_authorize(&self.app, &message.tenant, A2aMethod::PushSet)
                .await?;
            let config = read::push_config(message)?;
            push_set(&self.app, &caller, &agent, ProtocolVersion::V1_0, config)
                .await
                .map(write::push_config)
        })
        .await
    }

    async fn get_task_push_notification_config(
        &self,
        request: Request<pb::GetTaskPushNotificationConfigRequest>,
    ) -> GrpcResponse<pb::TaskPushNotificationConfig> {
        to_grpc_response(status::v1_status, async {
            let (call, message) =
                GrpcCallHead::split_and_check_version(request, ProtocolVersion::V1_0)?;
            let (caller, agent) = call
                .resolve_agent_and_authorize(&self.app, &message.tenant, A2aMethod::PushGet)
                .await?;
            let config_id = Some(message.id.as_str()).filter(|id| !id.is_empty());
            let config = push_get(&self.app, &caller, &agent, &message.task_id, config_id).await;
            config.map(write::push_config)
        })
        .await
    }

    async fn list_task_push_notification_configs(
        &self,
        request: Request<pb::ListTaskPushNotificationConfigsRequest>,
    ) -> GrpcResponse<pb::ListTaskPushNotificationConfigsResponse> {
        to_grpc_response(status::v1_status, async {
            let (call, message) =
                GrpcCallHead::split_and_check_version(request, ProtocolVersion::V1_0)?;
            let (caller, agent) = call
                .resolve_agent_and_authorize(&self.app, &message.tenant, A2aMethod::PushList)
                .await?;
            let configs = push_list(&self.app, &caller, &agent, &message.task_id).await?;
            Ok(pb::ListTaskPushNotificationConfigsResponse {
                configs: configs.into_iter().map(write::push_config).collect(),
                next_page_token: String::new(),
            })
        })
        .await
    }

    async fn delete_task_push_notification_config(
        &self,
        request: Request<pb::DeleteTaskPushNotificationConfigRequest>,
    ) -> GrpcResponse<()> {
        to_grpc_response(status::v1_status, async {
            let (call, message) =
                GrpcCallHead::split_and_check_version(request, ProtocolVersion::V1_0)?;
            let (caller, agent) = call
                .resolve_agent_and_authorize(&self.app, &message.tenant, A2aMethod::PushDelete)
                .await?;
            push_delete(&self.app, &caller, &agent, &message.task_id, &message.id).await
        })
        .await
    }

    async fn get_extended_agent_card(
        &self,
        request: Request<pb::GetExtendedAgentCardRequest>,
    ) -> GrpcResponse<pb::AgentCard> {
        to_grpc_response(status::v1_status, async {
            let (call, message) =
                GrpcCallHead::split_and_check_version(request, ProtocolVersion::V1_0)?;
            let host = call.requested_host();
            let (_, agent) = call
                .resolve_agent_and_authorize(&self.app, &message.tenant, A2aMethod::ExtendedCard)
                .await?;
            card::card_for_host(&self.app, &agent, host.as_ref()).map(write::card)
        })
        .await
    }
}
