//! Scheduler among the root's children.

use std::time::Duration;

use ractor::{ActorCell, ActorRef, SpawnErr};
use tokio::sync::watch;

use super::RootMsg;
use super::context::RootContext;
use crate::decide::recovery::restart::{RestartDecision, RestartHistory};
use crate::gateway::handle::GatewayHandle;
use crate::gateway::reader::ExecutionReader;
use crate::gateway::requests::RequestHandle;
use crate::scheduler::{SchedulerActor, SchedulerArgs, SchedulerConfig, SchedulerMsg};
use crate::services::Services;

/// Pause before the restart of a scheduler that fails repeatedly: it is never given up.
const RESTART_PAUSE: Duration = Duration::from_secs(60);

/// Arguments of the scheduler.
pub struct SchedulerSetup {
    /// Configuration of the scheduler; `None` if there is nothing to schedule.
    pub scheduler_config: Option<SchedulerConfig>,
    /// Sender of the present scheduler.
    pub scheduler_sender: watch::Sender<Option<ActorRef<SchedulerMsg>>>,
    /// Receiver of the shutdown state.
    pub draining: watch::Receiver<bool>,
}

/// Scheduler with its restarts.
pub(super) struct SchedulerChild {
    setup: SchedulerSetup,
    restart_history: RestartHistory,
}

impl SchedulerChild {
    pub(super) fn new(setup: SchedulerSetup) -> Self {
        Self { setup, restart_history: RestartHistory::default() }
    }

    /// Returns the scheduler with the number of its restarts.
    pub(super) fn actor_and_restarts(&self) -> Option<(ActorRef<SchedulerMsg>, u32)> {
        let actor = self.setup.scheduler_sender.borrow().clone()?;
        Some((actor, self.restart_history.total()))
    }

    /// Returns true if the scheduler is this actor.
    pub(super) fn matches_actor(&self, child: &ActorCell) -> bool {
        let scheduler = self.setup.scheduler_sender.borrow();
        scheduler.as_ref().is_some_and(|scheduler| scheduler.get_id() == child.get_id())
    }

    /// Starts the scheduler, if there is something to schedule.
    pub(super) async fn start(&mut self, context: &RootContext) -> Result<(), SpawnErr> {
        let Some(config) = &mut self.setup.scheduler_config else { return Ok(()) };
        // The configured schedules are applied once: callers may have changed them before a later start.
        let configured = config.configured_schedules.take();
        let config = SchedulerConfig { configured_schedules: configured, ..config.clone() };
        let draining = self.setup.draining.clone();
        let gateway_handle = GatewayHandle { gateway: context.gateway.subscribe(), draining };
        let services = Services::clone(&context.services);
        let requests = RequestHandle {
            reader: ExecutionReader { gateway_handle, services: services.clone() },
        };
        let args = SchedulerArgs { services, config, request_handle: requests };
        let actor = context.spawn_child(SchedulerActor, args).await?;
        // Before callers can reach it: a scheduler that starts late must not submit while the service stops.
        if context.is_draining {
            _ = actor.cast(SchedulerMsg::Drain);
        }
        self.setup.scheduler_sender.send_replace(Some(actor));
        Ok(())
    }

    /// Restarts the scheduler: at once, or after a pause if it failed too often.
    pub(super) async fn handle_failure(&mut self, fault: &str, context: &mut RootContext) {
        tracing::error!(fault, "scheduler failed");
        let decision = context.record_failure_and_decide(&mut self.restart_history);
        self.setup.scheduler_sender.send_replace(None);
        match decision {
            RestartDecision::Restart => self.restart(context).await,
            RestartDecision::Quarantine => {
                context.send_after(RESTART_PAUSE, RootMsg::RestartScheduler);
            }
        }
    }

    /// Restarts the scheduler; if the start fails, retries later.
    pub(super) async fn restart(&mut self, context: &mut RootContext) {
        if let Err(error) = self.start(context).await {
            tracing::error!(%error, "scheduler did not start");
            context.send_after(RESTART_PAUSE, RootMsg::RestartScheduler);
        }
    }
}
