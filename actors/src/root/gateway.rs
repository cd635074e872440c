//! Gateway among the root's children.

use std::collections::HashMap;

use ractor::{ActorCell, SpawnErr};

use super::context::{RootContext, record_failure_and_decide_at};
use crate::decide::recovery::restart::{RestartHistory, RestartLimit};
use crate::gateway::{AgentRoute, GatewayActor};
use crate::model::id::AgentId;
use crate::services::Services;

/// Gateway with its restarts. Its present actor is in the context, because agents publish their routes to it.
#[derive(Default)]
pub(super) struct GatewayChild {
    restart_history: RestartHistory,
}

impl GatewayChild {
    /// Returns the number of restarts.
    pub(super) const fn restarts(&self) -> u32 {
        self.restart_history.total()
    }

    /// Returns true if the gateway is this actor.
    pub(super) fn matches_actor(child: &ActorCell, context: &RootContext) -> bool {
        let gateway = context.gateway.borrow();
        gateway.as_ref().is_some_and(|gateway| gateway.get_id() == child.get_id())
    }

    /// Starts the gateway with the routes of all agents.
    pub(super) async fn start(
        routes: HashMap<AgentId, AgentRoute>,
        context: &RootContext,
    ) -> Result<(), SpawnErr> {
        let args = (Services::clone(&context.services), routes);
        let actor = context.spawn_child(GatewayActor, args).await?;
        context.gateway.send_replace(Some(actor));
        Ok(())
    }

    /// Restarts the gateway, however often it fails, because it holds only routes.
    pub(super) async fn handle_failure(
        &mut self,
        fault: &str,
        routes: HashMap<AgentId, AgentRoute>,
        context: &RootContext,
    ) {
        tracing::error!(fault, "gateway failed");
        let unlimited = RestartLimit { max_restarts: usize::MAX, ..RestartLimit::default() };
        record_failure_and_decide_at(&mut self.restart_history, context.elapsed(), unlimited);
        if let Err(error) = Self::start(routes, context).await {
            tracing::error!(%error, "gateway did not start");
            context.root.stop(None);
        }
    }
}
