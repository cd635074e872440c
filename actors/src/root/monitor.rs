//! Monitor among the root's children.

use ractor::{ActorCell, ActorRef, SpawnErr};

use super::context::RootContext;
use crate::decide::recovery::restart::{RestartDecision, RestartHistory};
use crate::maintenance::monitor::{MonitorActor, MonitorArgs, MonitorMsg, MonitorSettings};
use crate::model::host::host_fault::HostCondition;
use crate::services::Services;

/// Monitor with its settings.
pub(super) struct MonitorChild {
    settings: MonitorSettings,
    actor: Option<ActorRef<MonitorMsg>>,
    restart_history: RestartHistory,
}

impl MonitorChild {
    pub(super) fn new(settings: MonitorSettings) -> Self {
        Self { settings, actor: None, restart_history: RestartHistory::default() }
    }

    /// Returns true if the monitor is this actor.
    pub(super) fn matches_actor(&self, child: &ActorCell) -> bool {
        self.actor.as_ref().is_some_and(|monitor| monitor.get_id() == child.get_id())
    }

    /// Returns the monitor with the number of its restarts.
    pub(super) fn actor_and_restarts(&self) -> Option<(ActorRef<MonitorMsg>, u32)> {
        self.actor.clone().map(|monitor| (monitor, self.restart_history.total()))
    }

    /// Starts the monitor, and directs the observations of all actors to it.
    pub(super) async fn start(&mut self, context: &RootContext) -> Result<(), SpawnErr> {
        let args = MonitorArgs {
            services: Services::clone(&context.services),
            settings: self.settings.clone(),
            host_condition: context.host_condition.clone(),
        };
        let monitor = context.spawn_child(MonitorActor, args).await?;
        context.services.monitor.set_monitor(monitor.clone());
        self.actor = Some(monitor);
        Ok(())
    }

    /// Restarts the monitor. Work continues without it: until the next reading the machine counts as free of pressure
    /// and faults.
    pub(super) async fn handle_failure(&mut self, fault: &str, context: &RootContext) {
        tracing::error!(fault, "monitor failed");
        context.host_condition.send_replace(HostCondition::default());
        let result = match context.record_failure_and_decide(&mut self.restart_history) {
            RestartDecision::Restart => {
                self.start(context).await.map_err(|error| error.to_string())
            }
            RestartDecision::Quarantine => Err("it failed too often".to_owned()),
        };
        if let Err(error) = result {
            tracing::error!(error, "host metrics stopped");
        }
    }
}
