//! Agents among the root's children: start, restart and quarantine.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorCell, ActorRef, RpcReplyPort, SpawnErr};

use super::context::{RootContext, record_failure_and_decide_at};
use super::{AgentDefinition, RegisteredAgent, RootMsg};
use crate::agent::{AgentActor, AgentArgs, AgentMsg};
use crate::decide::notification::alert::AlertInput;
use crate::decide::recovery::restart::{
    RestartDecision, RestartHistory, RestartLimit, next_start_retry_pause,
};
use crate::execution::recovery::settle_all_but_waiting;
use crate::gateway::{AgentRoute, GatewayMsg};
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::id::AgentId;
use crate::ports::ledger::LedgerError;
use crate::services::panic_guard::run_with_panic_guard;

/// Fault of an agent that cannot be started because of the ledger.
const LEDGER_UNAVAILABLE_FAULT: &str =
    "agent not started: the disk of the ledger cannot be read or written";

/// Agents of the service, with their actors.
#[derive(Default)]
pub(super) struct AgentChildren {
    children: BTreeMap<AgentId, AgentChild>,
    /// Number of removals of agents.
    pub(super) removal_count: u64,
}

/// Agent with its actor.
pub(super) struct AgentChild {
    pub(super) definition: AgentDefinition,
    pub(super) actor: Option<ActorRef<AgentMsg>>,
    pub(super) restart_history: RestartHistory,
    /// Present pause before the restart of the agent.
    pub(super) restart_pause: Option<Duration>,
    last_fault: Option<String>,
    pub(super) removal: Option<AgentRemoval>,
}

/// Removal of an agent with unfinished work.
pub(super) struct AgentRemoval {
    /// Number of the removal: the agent may be added and removed again.
    pub(super) number: u64,
    /// Reply ports of the callers that wait for the end.
    pub(super) replies: Vec<RpcReplyPort<()>>,
}

impl AgentChild {
    fn new(definition: AgentDefinition) -> Self {
        let restarts = RestartHistory::default();
        Self {
            definition,
            actor: None,
            restart_history: restarts,
            restart_pause: None,
            last_fault: None,
            removal: None,
        }
    }

    fn route(&self) -> AgentRoute {
        let id = &self.definition.spec.id;
        match &self.actor {
            Some(actor) => AgentRoute::Open(actor.clone()),
            None if self.restart_pause.is_some() => {
                AgentRoute::Rejecting(agent_restarting_failure(id))
            }
            None => AgentRoute::Rejecting(agent_quarantined_failure(id)),
        }
    }

    fn snapshot(&self) -> RegisteredAgent {
        RegisteredAgent {
            spec: Arc::clone(&self.definition.spec),
            actor: self.actor.clone(),
            is_restarting: self.restart_pause.is_some(),
            restarts: self.restart_history.total(),
            last_fault: self.last_fault.clone(),
        }
    }
}

impl AgentChildren {
    pub(super) fn new(definitions: Vec<AgentDefinition>) -> Self {
        let child =
            |definition: AgentDefinition| (definition.spec.id.clone(), AgentChild::new(definition));
        Self { children: definitions.into_iter().map(child).collect(), ..Self::default() }
    }

    pub(super) fn get(&self, id: &AgentId) -> Option<&AgentChild> {
        self.children.get(id)
    }

    pub(super) fn child_mut(&mut self, id: &AgentId) -> Option<&mut AgentChild> {
        self.children.get_mut(id)
    }

    pub(super) fn take(&mut self, id: &AgentId) -> Option<AgentChild> {
        self.children.remove(id)
    }

    /// Sets the definition of a new or an existing agent, and returns the agent.
    pub(super) fn set_definition(&mut self, definition: AgentDefinition) -> &mut AgentChild {
        let id = definition.spec.id.clone();
        let new_child = || AgentChild::new(definition.clone());
        let child = self.children.entry(id).or_insert_with(new_child);
        child.definition = definition;
        child
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &AgentChild> {
        self.children.values()
    }

    /// Iterates over the running actors.
    pub(super) fn actors(&self) -> impl Iterator<Item = &ActorRef<AgentMsg>> {
        self.iter().filter_map(|child| child.actor.as_ref())
    }

    /// Returns the agent of an actor.
    pub(super) fn find_by_actor(&self, actor: &ActorCell) -> Option<AgentId> {
        let is_this_actor = |child: &&AgentChild| {
            child.actor.as_ref().is_some_and(|present| present.get_id() == actor.get_id())
        };
        self.iter().find(is_this_actor).map(|child| child.definition.spec.id.clone())
    }

    /// Returns the displayed agents, in the order of their ids.
    pub(super) fn snapshots(&self) -> Vec<RegisteredAgent> {
        self.iter().map(AgentChild::snapshot).collect()
    }

    /// Returns the routes to all agents, for a new gateway.
    pub(super) fn routes(&self) -> HashMap<AgentId, AgentRoute> {
        self.children.iter().map(|(id, child)| (id.clone(), child.route())).collect()
    }

    fn publish_route(&self, id: &AgentId, context: &RootContext) {
        if let (Some(child), Some(gateway)) = (self.get(id), &*context.gateway.borrow()) {
            _ = gateway.cast(GatewayMsg::SetRoute(id.clone(), child.route())); // A new gateway receives all routes.
        }
    }

    /// Starts every agent; `agents_to_recover` are those with unfinished executions in the ledger.
    pub(super) async fn start_all(
        &mut self,
        agents_to_recover: &BTreeSet<AgentId>,
        context: &mut RootContext,
    ) -> Result<(), SpawnErr> {
        for id in self.children.keys().cloned().collect::<Vec<_>>() {
            self.start(&id, !agents_to_recover.contains(&id), context).await?;
        }
        Ok(())
    }

    /// Starts an agent; `skips_recovery` means that the ledger has no unfinished execution of it.
    pub(super) async fn start(
        &mut self,
        id: &AgentId,
        skips_recovery: bool,
        context: &mut RootContext,
    ) -> Result<(), SpawnErr> {
        let Some(child) = self.children.get_mut(id) else { return Ok(()) };
        let AgentDefinition { spec, driver } = child.definition.clone();
        let args = AgentArgs {
            spec,
            driver,
            services: context.services.clone(),
            skips_recovery,
            is_draining: context.is_draining,
            host_condition: context.host_condition.subscribe(),
        };
        child.actor = None; // If the start fails, no request may reach the failed actor.
        let actor = context.spawn_child(AgentActor, args).await?;
        (child.actor, child.restart_pause) = (Some(actor), None);
        self.publish_route(id, context);
        self.request_shutdown_if_removed(id, context);
        Ok(())
    }

    /// Restarts a failed agent until the restart limit is reached.
    pub(super) async fn handle_failure(
        &mut self,
        id: &AgentId,
        fault: &str,
        context: &mut RootContext,
    ) {
        // All failures of one loop count for the same time: slow starts must not lift the restart limit.
        let now = context.elapsed();
        let mut fault = fault.to_owned();
        loop {
            let Some(child) = self.children.get_mut(id) else { return };
            tracing::error!(agent = %id, fault, "agent failed");
            let redactor = context.services.redactor.current();
            child.last_fault = Some(first_line(&redactor.redact(&fault)));
            let decision = record_failure_and_decide_at(
                &mut child.restart_history,
                now,
                RestartLimit::default(),
            );
            if decision == RestartDecision::Quarantine {
                return self.quarantine(id, context);
            }
            match self.start(id, false, context).await {
                Ok(()) => return,
                Err(error) if is_ledger_error(&error) => return self.restart_later(id, context),
                Err(error) => fault = error.to_string(),
            }
        }
    }

    /// Retries the start of an agent that failed because of the ledger.
    pub(super) async fn restart_after_pause(&mut self, id: &AgentId, context: &mut RootContext) {
        // The agent may have been reconfigured, removed or started during the pause. Executions that are left
        // when the service stops continue after the next start.
        let is_waiting = self.get(id).is_some_and(|child| child.restart_pause.is_some());
        if !is_waiting || context.is_draining {
            return;
        }
        match self.start(id, false, context).await {
            Ok(()) => tracing::info!(agent = %id, "agent restarted"),
            Err(error) if is_ledger_error(&error) => self.restart_later(id, context),
            Err(error) => self.handle_failure(id, &error.to_string(), context).await,
        }
    }

    /// Waits for the ledger before an agent is started again. This does not count as a restart: the fault is
    /// not the agent's, and its executions must not fail because a disk is full for a minute.
    pub(super) fn restart_later(&mut self, id: &AgentId, context: &mut RootContext) {
        let Some(child) = self.children.get_mut(id) else { return };
        let restart_pause = next_start_retry_pause(child.restart_pause);
        child.restart_pause = Some(restart_pause);
        child.last_fault = Some(LEDGER_UNAVAILABLE_FAULT.to_owned());
        tracing::error!(agent = %id, retry_in_s = restart_pause.as_secs(), "{LEDGER_UNAVAILABLE_FAULT}");
        context.send_after(restart_pause, RootMsg::RestartAgent(id.clone()));
        self.publish_route(id, context);
    }

    /// Quarantines an agent, and settles its executions, because no actor will recover them.
    fn quarantine(&mut self, id: &AgentId, context: &mut RootContext) {
        tracing::error!(agent = %id, "agent quarantined");
        context.services.monitor.send_alert_input(AlertInput::AgentQuarantined(id.clone()));
        self.settle_executions(id.clone(), context);
        if let Some(child) = self.children.get_mut(id) {
            (child.actor, child.restart_pause) = (None, None);
        }
        self.publish_route(id, context);
        self.request_shutdown_if_removed(id, context);
    }

    /// Settles the executions of a quarantined agent; the root repeats this if the task panics.
    pub(super) fn settle_executions(&self, id: AgentId, context: &mut RootContext) {
        let Some(driver) = self.get(&id).map(|child| Arc::clone(&child.definition.driver)) else {
            return;
        };
        let (services, agent, root) = (context.services.clone(), id.clone(), context.root.clone());
        let settlement = async move {
            settle_all_but_waiting(&services, &*driver, &agent, &agent_quarantined_failure(&agent))
                .await;
        };
        context.spawn(run_with_panic_guard(settlement, move || {
            _ = root.cast(RootMsg::SettlementPanicked(id));
        }));
    }
}

/// Returns true if an actor did not start because the ledger could not be read or written.
pub(super) fn is_ledger_error(error: &SpawnErr) -> bool {
    matches!(error, SpawnErr::StartupFailed(cause) if cause.is::<LedgerError>())
}

fn agent_quarantined_failure(agent: &AgentId) -> Failure {
    let message = format!("agent `{agent}` failed too often and is quarantined");
    Failure::new(Code::AgentQuarantined, message)
}

fn agent_restarting_failure(agent: &AgentId) -> Failure {
    let message = format!(
        "agent `{agent}` failed, and is started again when the disk of the ledger can be read and written"
    );
    Failure::new(Code::LedgerUnavailable, message)
}

/// Returns the first line of a fault: the rest of a panic message does not help readers of `/status`.
fn first_line(fault: &str) -> String {
    fault.lines().next().unwrap_or_default().to_owned()
}
