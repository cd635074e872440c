//! The service of A2A 0.3.

use algonius_a2a::A2aMethod;
use algonius_a2a::grpc::proto::a2a_v1 as pb;
use algonius_a2a::grpc::v0_3::{read, write};
use algonius_a2a::v1::TaskQuery;
use algonius_actors::model::access::endpoint_config::ProtocolVersion;
use tonic::Request;

use super::interceptor::GrpcCallHead;
use super::{GrpcResponse, GrpcStream, status, to_grpc_response, to_grpc_stream};
use crate::serve::AppState;
use crate::serve::a2a::card;
use crate::serve::a2a::operations::push::{push_delete, push_get, push_list, push_set};
use crate::serve::a2a::operations::{self, SentMessage};

/// Service for calls of 0.3.
pub(super) struct GrpcServiceV03 {
    app: AppState,
}

impl GrpcServiceV03 {
    pub(super) const fn new(app: AppState) -> Self {
        Self { app }
    }
}

/// Tenant of messages of 0.3, which have no field for it.
const NO_TENANT: &str = "";

#[tonic::async_trait]
impl pb::a2a_service_server::A2aService for GrpcServiceV03 {
    type SendStreamingMessageStream = GrpcStream<pb::StreamResponse>;
    type TaskSubscriptionStream = GrpcStream<pb::StreamResponse>;

    async fn send_message(
        &self,
        request: Request<pb::SendMessageRequest>,
    ) -> GrpcResponse<pb::SendMessageResponse> {
        to_grpc_response(
            status::v0_3_status,
            Box::pin(async {
                let (call, message) =
                    GrpcCallHead::split_and_check_version(request, ProtocolVersion::V0_3)?;
                let metadata = call.transport_metadata()?;
                let (caller, agent) =
                    call.resolve_agent_and_authorize(&self.app, NO_TENANT, A2aMethod::Send).await?;
                let send = read::send_request(message)?;
                let sent_message =
                    SentMessage { version: ProtocolVersion::V0_3, metadata, request: send };
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
        to_grpc_response(status::v0_3_status, async {
            let (call, message) =
                GrpcCallHead::split_and_check_version(request, ProtocolVersion::V0_3)?;
            let metadata = call.transport_metadata()?;
            let (caller, agent) =
                call.resolve_agent_and_authorize(&self.app, NO_TENANT, A2aMethod::Stream).await?;
            let send = read::send_request(message)?;
            let sent_message =
                SentMessage { version: ProtocolVersion::V0_3, metadata, request: send };
            let events =
                Box::pin(operations::stream(&self.app, &caller, &agent, sent_message)).await?;
            Ok(to_grpc_stream(status::v0_3_status, events, write::event))
        })
        .await
    }

    async fn get_task(&self, request: Request<pb::GetTaskRequest>) -> GrpcResponse<pb::Task> {
        to_grpc_response(status::v0_3_status, async {
            let (call, message) =
                GrpcCallHead::split_and_check_version(request, ProtocolVersion::V0_3)?;
            let (caller, agent) =
                call.resolve_agent_and_authorize(&self.app, NO_TENANT, A2aMethod::Get).await?;
            let history_length = read::read_history_length(message.history_length)?;
            let query =
                TaskQuery { id: read::parse_task_name(&message.name)?.to_owned(), history_length };
            operations::get(&self.app, &caller, &agent, query).await.and_then(write::task)
        })
        .await
    }

    async fn cancel_task(&self, request: Request<pb::CancelTaskRequest>) -> GrpcResponse<pb::Task> {
        to_grpc_response(status::v0_3_status, async {
            let (call, message) =
                GrpcCallHead::split_and_check_version(request, ProtocolVersion::V0_3)?;
            let (caller, agent) =
                call.resolve_agent_and_authorize(&self.app, NO_TENANT, A2aMethod::Cancel).await?;
            let id = read::parse_task_name(&message.name)?;
            operations::cancel(&self.app, &caller, &agent, id).await.and_then(write::task)
        })
        .await
    }

    async fn task_subscription(
        &self,
        request: Request<pb::TaskSubscriptionRequest>,
    ) -> GrpcResponse<Self::TaskSubscriptionStream> {
        to_grpc_response(status::v0_3_status, async {
            let (call, message) =
                GrpcCallHead::split_and_check_version(request, ProtocolVersion::V0_3)?;
            let metadata = call.transport_metadata()?;
            let (caller, agent) = call
                .resolve_agent_and_authorize(&self.app, NO_TENANT, A2aMethod::Subscribe)
                .await?;
            let id = read::parse_task_name(&message.name)?;
            let version_and_metadata = (ProtocolVersion::V0_3, &metadata);
            let events =
                operations::subscribe(&self.app, &caller, &agent, id, version_and_metadata).await?;
            Ok(to_grpc_stream(status::v0_3_status, events, write::event))
        })
        .await
    }

    async fn create_task_push_notification_config(
        &self,
        request: Request<pb::CreateTaskPushNotificationConfigRequest>,
    ) -> GrpcResponse<pb::TaskPushNotificationConfig> {
        to_grpc_response(status::v0_3_status, async {
            let (call, message) =
                GrpcCallHead::split_and_check_version(request, ProtocolVersion::V0_3)?;
            let (caller, agent) =
                call.resolve_agent_and_authorize(&self.app, NO_TENANT, A2aMethod::PushSet).await?;
            let config = read::push_config_request(message)?;
            push_set(&self.app, &caller, &agent, ProtocolVersion::V0_3, config)
                .await
                .map(write::push_config)
        })
        .await
    }

    async fn get_task_push_notification_config(
        &self,
        request: Request<pb::GetTaskPushNotificationConfigRequest>,
    ) -> GrpcResponse<pb::TaskPushNotificationConfig> {
        to_grpc_response(status::v0_3_status, async {
            let (call, message) =
                GrpcCallHead::split_and_check_version(request, ProtocolVersion::V0_3)?;
            let (caller, agent) =
                call.resolve_agent_and_authorize(&self.app, NO_TENANT, A2aMethod::PushGet).await?;
            let (task_id, config_id) = read::parse_push_config_name(&message.name)?;
            let config = push_get(&self.app, &caller, &agent, task_id, config_id).await;
            config.map(write::push_config)
        })
        .await
    }

    async fn list_task_push_notification_config(
        &self,
        request: Request<pb::ListTaskPushNotificationConfigRequest>,
    ) -> GrpcResponse<pb::ListTaskPushNotificationConfigResponse> {
        to_grpc_response(status::v0_3_status, async {
            let (call, message) =
                GrpcCallHead::split_and_check_version(request, ProtocolVersion::V0_3)?;
            let (caller, agent) =
                call.resolve_agent_and_authorize(&self.app, NO_TENANT, A2aMethod::PushList).await?;
            let task_id = read::parse_task_name(&message.parent)?;
            let configs = push_list(&self.app, &caller, &agent, task_id).await?;
            Ok(pb::ListTaskPushNotificationConfigResponse {
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
        to_grpc_response(status::v0_3_status, async {
            let (call, message) =
                GrpcCallHead::split_and_check_version(request, ProtocolVersion::V0_3)?;
            let (caller, agent) = call
                .resolve_agent_and_authorize(&self.app, NO_TENANT, A2aMethod::PushDelete)
                .await?;
            let (task_id, config_id) = read::parse_push_config_name(&message.name)?;
            // The first registration without an id of its own has the id of the task.
            push_delete(&self.app, &caller, &agent, task_id, config_id.unwrap_or(task_id)).await
        })
        .await
    }

    async fn get_agent_card(
        &self,
        request: Request<pb::GetAgentCardRequest>,
    ) -> GrpcResponse<pb::AgentCard> {
        to_grpc_response(status::v0_3_status, async {
            let (call, _) = GrpcCallHead::split_and_check_version(request, ProtocolVersion::V0_3)?;
            let host = call.requested_host();
            let (_, agent) = call
                .resolve_agent_and_authorize(&self.app, NO_TENANT, A2aMethod::ExtendedCard)
                .await?;
            card::card_for_host(&self.app, &agent, host.as_ref()).map(write::card)
        })
        .await
    }
}
