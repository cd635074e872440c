//! The service of A2A 0.3.

mod read;
mod write;

#[cfg(test)]
mod tests;

use algonius_actors::model::exposure::Version;
use tonic::Request;

use super::arrival::Arrival;
use super::proto::a2a_v1 as pb;
use super::{Answer, Answers, settle, status, stream};
use crate::serve::a2a::Sending;
use crate::serve::push::{push_delete, push_get, push_list, push_set};
use crate::serve::{App, a2a, card};
use crate::wire::a2a::Method;
use crate::wire::a2a::v1::TaskQuery;

/// Answers calls of 0.3.
pub(super) struct Service {
    app: App,
}

impl Service {
    pub(super) const fn new(app: App) -> Self {
        Self { app }
    }
}

/// No message of 0.3 names an agent.
const NO_TENANT: &str = "";

#[tonic::async_trait]
impl pb::a2a_service_server::A2aService for Service {
    type SendStreamingMessageStream = Answers<pb::StreamResponse>;
    type TaskSubscriptionStream = Answers<pb::StreamResponse>;

    async fn send_message(
        &self,
        request: Request<pb::SendMessageRequest>,
    ) -> Answer<pb::SendMessageResponse> {
        settle(
            status::of_old,
            Box::pin(async {
                let (arrival, asked) = Arrival::of(request, Version::V0_3)?;
                let beside = arrival.beside()?;
                let (caller, agent) = arrival.at(&self.app, NO_TENANT, Method::Send).await?;
                let send = read::send_request(asked)?;
                let sending = Sending { version: Version::V0_3, beside, send };
                a2a::send(&self.app, &caller, &agent, sending).await.and_then(write::reply)
            }),
        )
        .await
    }

    async fn send_streaming_message(
        &self,
        request: Request<pb::SendMessageRequest>,
    ) -> Answer<Self::SendStreamingMessageStream> {
        settle(status::of_old, async {
            let (arrival, asked) = Arrival::of(request, Version::V0_3)?;
            let beside = arrival.beside()?;
            let (caller, agent) = arrival.at(&self.app, NO_TENANT, Method::Stream).await?;
            let send = read::send_request(asked)?;
            let sending = Sending { version: Version::V0_3, beside, send };
            let events = Box::pin(a2a::stream(&self.app, &caller, &agent, sending)).await?;
            Ok(stream(status::of_old, events, write::event))
        })
        .await
    }

    async fn get_task(&self, request: Request<pb::GetTaskRequest>) -> Answer<pb::Task> {
        settle(status::of_old, async {
            let (arrival, asked) = Arrival::of(request, Version::V0_3)?;
            let (caller, agent) = arrival.at(&self.app, NO_TENANT, Method::Get).await?;
            let history = read::history(asked.history_length)?;
            let query = TaskQuery { id: read::task_name(&asked.name)?.to_owned(), history };
            a2a::get(&self.app, &caller, &agent, query).await.and_then(write::task)
        })
        .await
    }

    async fn cancel_task(&self, request: Request<pb::CancelTaskRequest>) -> Answer<pb::Task> {
        settle(status::of_old, async {
            let (arrival, asked) = Arrival::of(request, Version::V0_3)?;
            let (caller, agent) = arrival.at(&self.app, NO_TENANT, Method::Cancel).await?;
            let id = read::task_name(&asked.name)?;
            a2a::cancel(&self.app, &caller, &agent, id).await.and_then(write::task)
        })
        .await
    }

    async fn task_subscription(
        &self,
        request: Request<pb::TaskSubscriptionRequest>,
    ) -> Answer<Self::TaskSubscriptionStream> {
        settle(status::of_old, async {
            let (arrival, asked) = Arrival::of(request, Version::V0_3)?;
            let beside = arrival.beside()?;
            let (caller, agent) = arrival.at(&self.app, NO_TENANT, Method::Subscribe).await?;
            let id = read::task_name(&asked.name)?;
            let as_known = (Version::V0_3, &beside);
            let events = a2a::subscribe(&self.app, &caller, &agent, id, as_known).await?;
            Ok(stream(status::of_old, events, write::event))
        })
        .await
    }

    async fn create_task_push_notification_config(
        &self,
        request: Request<pb::CreateTaskPushNotificationConfigRequest>,
    ) -> Answer<pb::TaskPushNotificationConfig> {
        settle(status::of_old, async {
            let (arrival, asked) = Arrival::of(request, Version::V0_3)?;
            let (caller, agent) = arrival.at(&self.app, NO_TENANT, Method::PushSet).await?;
            let config = read::registration(asked)?;
            push_set(&self.app, &caller, &agent, Version::V0_3, config)
                .await
                .map(write::registration)
        })
        .await
    }

    async fn get_task_push_notification_config(
        &self,
        request: Request<pb::GetTaskPushNotificationConfigRequest>,
    ) -> Answer<pb::TaskPushNotificationConfig> {
        settle(status::of_old, async {
            let (arrival, asked) = Arrival::of(request, Version::V0_3)?;
            let (caller, agent) = arrival.at(&self.app, NO_TENANT, Method::PushGet).await?;
            let (task, config) = read::config_name(&asked.name)?;
            let found = push_get(&self.app, &caller, &agent, task, config).await;
            found.map(write::registration)
        })
        .await
    }

    async fn list_task_push_notification_config(
        &self,
        request: Request<pb::ListTaskPushNotificationConfigRequest>,
    ) -> Answer<pb::ListTaskPushNotificationConfigResponse> {
        settle(status::of_old, async {
            let (arrival, asked) = Arrival::of(request, Version::V0_3)?;
            let (caller, agent) = arrival.at(&self.app, NO_TENANT, Method::PushList).await?;
            let task = read::task_name(&asked.parent)?;
            let configs = push_list(&self.app, &caller, &agent, task).await?;
            Ok(pb::ListTaskPushNotificationConfigResponse {
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
        settle(status::of_old, async {
            let (arrival, asked) = Arrival::of(request, Version::V0_3)?;
            let (caller, agent) = arrival.at(&self.app, NO_TENANT, Method::PushDelete).await?;
            let (task, config) = read::config_name(&asked.name)?;
            // The first registration without an id of its own has the task's.
            push_delete(&self.app, &caller, &agent, task, config.unwrap_or(task)).await
        })
        .await
    }

    async fn get_agent_card(
        &self,
        request: Request<pb::GetAgentCardRequest>,
    ) -> Answer<pb::AgentCard> {
        settle(status::of_old, async {
            let (arrival, _) = Arrival::of(request, Version::V0_3)?;
            let (_, agent) = arrival.at(&self.app, NO_TENANT, Method::ExtendedCard).await?;
            card::of(&self.app, &agent).map(write::card)
        })
        .await
    }
}
