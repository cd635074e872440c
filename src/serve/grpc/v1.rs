//! The service of A2A 1.0.

mod read;
mod write;

#[cfg(test)]
mod tests;

use algonius_actors::model::exposure::Version;
use tonic::Request;

use super::arrival::Arrival;
use super::proto::lf_a2a_v1 as pb;
use super::{Answer, Answers, settle, status, stream};
use crate::serve::a2a::Sending;
use crate::serve::push::{push_delete, push_get, push_list, push_set};
use crate::serve::{App, a2a, card};
use crate::wire::a2a::Method;
use crate::wire::a2a::v1::TaskQuery;

/// Answers calls of 1.0.
pub(super) struct Service {
    app: App,
}

impl Service {
    pub(super) const fn new(app: App) -> Self {
        Self { app }
    }
}

#[tonic::async_trait]
impl pb::a2a_service_server::A2aService for Service {
    type SendStreamingMessageStream = Answers<pb::StreamResponse>;
    type SubscribeToTaskStream = Answers<pb::StreamResponse>;

    async fn send_message(
        &self,
        request: Request<pb::SendMessageRequest>,
    ) -> Answer<pb::SendMessageResponse> {
        settle(
            status::of,
            Box::pin(async {
                let (arrival, asked) = Arrival::of(request, Version::V1_0)?;
                let beside = arrival.beside()?;
                let (caller, agent) = arrival.at(&self.app, &asked.tenant, Method::Send).await?;
                let send = read::send_request(asked)?;
                let sending = Sending { version: Version::V1_0, beside, send };
                a2a::send(&self.app, &caller, &agent, sending).await.and_then(write::reply)
            }),
        )
        .await
    }

    async fn send_streaming_message(
        &self,
        request: Request<pb::SendMessageRequest>,
    ) -> Answer<Self::SendStreamingMessageStream> {
        settle(
            status::of,
            Box::pin(async {
                let (arrival, asked) = Arrival::of(request, Version::V1_0)?;
                let beside = arrival.beside()?;
                let (caller, agent) = arrival.at(&self.app, &asked.tenant, Method::Stream).await?;
                let send = read::send_request(asked)?;
                let sending = Sending { version: Version::V1_0, beside, send };
                let events = a2a::stream(&self.app, &caller, &agent, sending).await?;
                Ok(stream(status::of, events, write::event))
            }),
        )
        .await
    }

    async fn get_task(&self, request: Request<pb::GetTaskRequest>) -> Answer<pb::Task> {
        settle(status::of, async {
            let (arrival, asked) = Arrival::of(request, Version::V1_0)?;
            let (caller, agent) = arrival.at(&self.app, &asked.tenant, Method::Get).await?;
            let history = read::history(asked.history_length)?;
            let query = TaskQuery { id: asked.id, history };
            a2a::get(&self.app, &caller, &agent, query).await.and_then(write::task)
        })
        .await
    }

    async fn list_tasks(
        &self,
        request: Request<pb::ListTasksRequest>,
    ) -> Answer<pb::ListTasksResponse> {
        settle(status::of, async {
            let (arrival, asked) = Arrival::of(request, Version::V1_0)?;
            let (caller, agent) = arrival.at(&self.app, &asked.tenant, Method::List).await?;
            let list = read::list_request(asked)?;
            a2a::list(&self.app, &caller, &agent, list).await.and_then(write::page)
        })
        .await
    }

    async fn cancel_task(&self, request: Request<pb::CancelTaskRequest>) -> Answer<pb::Task> {
        settle(status::of, async {
            let (arrival, asked) = Arrival::of(request, Version::V1_0)?;
            let (caller, agent) = arrival.at(&self.app, &asked.tenant, Method::Cancel).await?;
            a2a::cancel(&self.app, &caller, &agent, &asked.id).await.and_then(write::task)
        })
        .await
    }

    async fn subscribe_to_task(
        &self,
        request: Request<pb::SubscribeToTaskRequest>,
    ) -> Answer<Self::SubscribeToTaskStream> {
        settle(status::of, async {
            let (arrival, asked) = Arrival::of(request, Version::V1_0)?;
            let beside = arrival.beside()?;
            let (caller, agent) = arrival.at(&self.app, &asked.tenant, Method::Subscribe).await?;
            let as_known = (Version::V1_0, &beside);
            let events = a2a::subscribe(&self.app, &caller, &agent, &asked.id, as_known).await?;
            Ok(stream(status::of, events, write::event))
        })
        .await
    }

    async fn create_task_push_notification_config(
        &self,
        request: Request<pb::TaskPushNotificationConfig>,
    ) -> Answer<pb::TaskPushNotificationConfig> {
        settle(status::of, async {
            let (arrival, asked) = Arrival::of(request, Version::V1_0)?;
            let (caller, agent) = arrival.at(&self.app, &asked.tenant, Method::PushSet).await?;
            let config = read::push(asked)?;
            push_set(&self.app, &caller, &agent, Version::V1_0, config)
                .await
                .map(write::registration)
        })
        .await
    }

    async fn get_task_push_notification_config(
        &self,
        request: Request<pb::GetTaskPushNotificationConfigRequest>,
    ) -> Answer<pb::TaskPushNotificationConfig> {
        settle(status::of, async {
            let (arrival, asked) = Arrival::of(request, Version::V1_0)?;
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
    ) -> Answer<pb::ListTaskPushNotificationConfigsResponse> {
        settle(status::of, async {
            let (arrival, asked) = Arrival::of(request, Version::V1_0)?;
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
    ) -> Answer<()> {
        settle(status::of, async {
            let (arrival, asked) = Arrival::of(request, Version::V1_0)?;
            let (caller, agent) = arrival.at(&self.app, &asked.tenant, Method::PushDelete).await?;
            push_delete(&self.app, &caller, &agent, &asked.task_id, &asked.id).await
        })
        .await
    }

    async fn get_extended_agent_card(
        &self,
        request: Request<pb::GetExtendedAgentCardRequest>,
    ) -> Answer<pb::AgentCard> {
        settle(status::of, async {
            let (arrival, asked) = Arrival::of(request, Version::V1_0)?;
            let (_, agent) = arrival.at(&self.app, &asked.tenant, Method::ExtendedCard).await?;
            card::of(&self.app, &agent).map(write::card)
        })
        .await
    }
}
