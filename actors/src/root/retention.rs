//! Start and restart of the retention actor by the root.

use std::sync::Arc;

use ractor::{ActorCell, ActorRef, SpawnErr};

use super::context::RootContext;
use crate::decide::recovery::restart::{RestartDecision, RestartHistory};
use crate::maintenance::retention::{RetentionActor, RetentionArgs, RetentionMsg, RetentionSpec};

/// Retention actor with its settings; it does not run without settings.
#[derive(Default)]
pub(super) struct RetentionChild {
    spec: Option<RetentionSpec>,
    actor: Option<ActorRef<RetentionMsg>>,
    restart_history: RestartHistory,
}

impl RetentionChild {
    pub(super) fn new(spec: Option<RetentionSpec>) -> Self {
        Self { spec, ..Self::default() }
    }

    /// Returns true if the retention actor is this one.
    pub(super) fn matches_actor(&self, child: &ActorCell) -> bool {
        self.actor.as_ref().is_some_and(|actor| actor.get_id() == child.get_id())
    }

    pub(super) fn actor_and_restarts(&self) -> Option<(ActorRef<RetentionMsg>, u32)> {
        let actor =
            self.actor.clone().filter(|_| self.spec.is_some_and(|spec| spec.limits.is_some()));
        actor.map(|actor| (actor, self.restart_history.total()))
    }

    /// Starts the actor, if it has settings.
    pub(super) async fn start(&mut self, context: &RootContext) -> Result<(), SpawnErr> {
        let Some(retention) = self.spec else { return Ok(()) };
        let services = &context.services;
        let (history, clock) = (Arc::clone(&services.stores.history), Arc::clone(&services.clock));
        let retry_window = services.input_sealer.retry_window();
        let args = RetentionArgs { history, clock, retention, retry_window };
        self.actor = Some(context.spawn_child(RetentionActor, args).await?);
        Ok(())
    }

    /// Restarts the actor. Work continues without it.
    pub(super) async fn handle_failure(&mut self, fault: &str, context: &RootContext) {
        tracing::error!(fault, "retention failed");
        let result = match context.record_failure_and_decide(&mut self.restart_history) {
            RestartDecision::Restart => {
                self.start(context).await.map_err(|error| error.to_string())
            }
            RestartDecision::Quarantine => Err("it failed too often".to_owned()),
        };
        if let Err(error) = result {
            tracing::error!(error, "retention has stopped");
        }
    }
}
