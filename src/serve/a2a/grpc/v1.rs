//! The service of A2A 1.0.

use algonius_a2a::Method;
use algonius_a2a::grpc::proto::lf_a2a_v1 as pb;
use algonius_a2a::grpc::v1::{read, write};
use algonius_a2a::v1::TaskQuery;
use algonius_actors::model::access::endpoint_config::ProtocolVersion;
use tonic::Request;

use super::interceptor::GrpcCall;
use super::{Answers, GrpcResponse, settle, status, stream};
use crate::serve::App;
use crate::serve::a2a::card;
use crate::serve::a2a::operations::push::{push_delete, push_get, push_list, push_set};
use crate::serve::a2a::operations::{self, SentMessage};

/// Service for calls of 1.0.
pub(super) struct GrpcServiceV1 {
    app: App,
}

impl GrpcServiceV1 {
    pub(super) const fn new(app: App) -> Self {
        Self { app }
    }
}

#[tonic::async_trait]
impl pb::a2a_service_server::A2aService for GrpcServiceV1 {
    type SendStreamingMessageStream = Answers<pb::StreamResponse>;
    type SubscribeToTaskStream = Answers<pb::StreamResponse>;

    async fn send_message(
        &self,
        request: Request<pb::SendMessageRequest>,
    ) -> GrpcResponse<pb::SendMessageResponse> {
        settle(
            status::of,
            Box::pin(async {
                let (arrival, asked) = GrpcCall::of(request, ProtocolVersion::V1_0)?;
                let metadata = arrival.request_metadata()?;
                let (caller, agent) = arrival.at(&self.app, &asked.tenant, Method::Send).await?;
                let send = read::send_request(asked)?;
                let sending = SentMessage { version: ProtocolVersion::V1_0, metadata, send };
                operations::send(&self.app, &caller, &agent, sending).await.and_then(write::reply)
            }),
        )
        .await
    }

    async fn send_streaming_message(
        &self,
        request: Request<pb::SendMessageRequest>,
    ) -> GrpcResponse<Self::SendStreamingMessageStream> {
        settle(
            status::of,
            Box::pin(async {
                let (arrival, asked) = GrpcCall::of(request, ProtocolVersion::V1_0)?;
                let metadata = arrival.request_metadata()?;
                let (caller, agent) = arrival.at(&self.app, &asked.tenant, Method::Stream).await?;
                let send = read::send_request(asked)?;
                let sending = SentMessage { version: ProtocolVersion::V1_0, metadata, send };
                let events = operations::stream(&self.app, &caller, &agent, sending).await?;
                Ok(stream(status::of, events, write::event))
            }),
        )
        .await
    }

    async fn get_task(&self, request: Request<pb::GetTaskRequest>) -> GrpcResponse<pb::Task> {
        settle(status::of, async {
            let (arrival, asked) = GrpcCall::of(request, ProtocolVersion::V1_0)?;
            let (caller, agent) = arrival.at(&self.app, &asked.tenant, Method::Get).await?;
            let history = read::history(asked.history_length)?;
            let query = TaskQuery { id: asked.id, history };
            operations::get(&self.app, &caller, &agent, query).await.and_then(write::task)
        })
        .await
    }

    async fn list_tasks(
        &self,
        request: Request<pb::ListTasksRequest>,
    ) -> GrpcResponse<pb::ListTasksResponse> {
        settle(status::of, async {
            let (arrival, asked) = GrpcCall::of(request, ProtocolVersion::V1_0)?;
            let (caller, agent) = arrival.at(&self.app, &asked.tenant, Method::List).await?;
            let list = read::list_request(asked)?;
            operations::list(&self.app, &caller, &agent, list).await.and_then(write::page)
        })
        .await
    }

    async fn cancel_task(&self, request: Request<pb::CancelTaskRequest>) -> GrpcResponse<pb::Task> {
        settle(status::of, async {
            let (arrival, asked) = GrpcCall::of(request, ProtocolVersion::V1_0)?;
            let (caller, agent) = arrival.at(&self.app, &asked.tenant, Method::Cancel).await?;
            operations::cancel(&self.app, &caller, &agent, &asked.id).await.and_then(write::task)
        })
        .await
    }

    async fn subscribe_to_task(
        &self,
        request: Request<pb::SubscribeToTaskRequest>,
    ) -> GrpcResponse<Self::SubscribeToTaskStream> {
        settle(status::of, async {
            let (arrival, asked) = GrpcCall::of(request, ProtocolVersion::V1_0)?;
            let metadata = arrival.request_metadata()?;
            let (caller, agent) = arrival.at(&self.app, &asked.tenant, Method::Subscribe).await?;
            let as_known = (ProtocolVersion::V1_0, &metadata);
            let events =
                operations::subscribe(&self.app, &caller, &agent, &asked.id, as_known).await?;
            Ok(stream(status::of, events, write::event))
        })
        .await
    }

    async fn create_task_push_notification_config(
        &self,
        request: Request<pb::TaskPushNotificationConfig>,
    ) -> GrpcResponse<pb::TaskPushNotificationConfig> {
        settle(status::of, async {
            let (arrival, asked) = GrpcCall::of(request, ProtocolVersion::V1_0)?;
            let (caller, agent) = arrival.at(&self.app, &asked.tenant, Method::PushSet).await?;
            let config = read::push(asked)?;
            push_set(&self.app, &caller, &agent, ProtocolVersion::V1_0, config)
                .await
                .map(write::registration)
        })
        .await
    }

    async fn get_task_push_notification_config(
        &self,
        request: Request<pb::GetTaskPushNotificationConfigRequest>,
    ) -> GrpcResponse<pb::TaskPushNotificationConfig> {
        settle(status::of, async {
            let (arrival, asked) = GrpcCall::of(request, ProtocolVersion::V1_0)?;
            let (caller, agent) = arrival.at(&self.app, &asked.tenant, Method::PushGet).await?;
            let config = Some(asked.id.as_str()).filter(|id| !id.is_empty());
            let found = push_get(&self.app, &caller, &agent, &asked.task_id, config).await;
            found.map(write::registration)
        })
        .await
    }

    async fn list_task_push_notification_configs(
        &self,
        request: Request<pb::ListTaskPushNotificationConfigsRequest>,
    ) -> GrpcResponse<pb::ListTaskPushNotificationConfigsResponse> {
        settle(status::of, async {
            let (arrival, asked) = GrpcCall::of(request, ProtocolVersion::V1_0)?;
            let (caller, agent) = arrival.at(&self.app, &asked.tenant, Method::PushList).await?;
            let configs = push_list(&self.app, &caller, &agent, &asked.task_id).await?;
            Ok(pb::ListTaskPushNotificationConfigsResponse {
                configs: configs.into_iter().map(write::registration).collect(),
                next_page_token: String::new(),
            })
        })
        .await
    }

    async fn delete_task_push_notification_config(
        &self,
        request: Request<pb::DeleteTaskPushNotificationConfigRequest>,
    ) -> GrpcResponse<()> {
        settle(status::of, async {
            let (arrival, asked) = GrpcCall::of(request, ProtocolVersion::V1_0)?;
            let (caller, agent) = arrival.at(&self.app, &asked.tenant, Method::PushDelete).await?;
            push_delete(&self.app, &caller, &agent, &asked.task_id, &asked.id).await
        })
        .await
    }

    async fn get_extended_agent_card(
        &self,
        request: Request<pb::GetExtendedAgentCardRequest>,
    ) -> GrpcResponse<pb::AgentCard> {
        settle(status::of, async {
            let (arrival, asked) = GrpcCall::of(request, ProtocolVersion::V1_0)?;
            let host = arrival.asked_host();
            let (_, agent) = arrival.at(&self.app, &asked.tenant, Method::ExtendedCard).await?;
            card::of(&self.app, &agent, host.as_ref()).map(write::card)
        })
        .await
    }
}
