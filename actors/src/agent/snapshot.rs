//! Snapshot of an agent.

use ractor::ActorRef;

use super::{AgentActorState, AgentArgs};
use crate::execution::ExecutionMsg;
use crate::model::id::ExecutionId;
use crate::model::observation::status::{AgentStatus, Health};

/// Snapshot of an agent, with the actors of its executions for further requests.
pub struct AgentSnapshot {
    /// Status of the agent; `work.running` has the executions without an actor, and must be filled from `executions`.
    pub status: AgentStatus,
    /// Executions that have an actor.
    pub executions: Vec<(ExecutionId, ActorRef<ExecutionMsg>)>,
}

impl AgentSnapshot {
    /// Returns the present snapshot of an agent.
    pub(super) fn new(agent: &AgentActorState) -> Self {
        let mut status = agent.args.status_without_work(agent.lifecycle.is_stopping());
        status.actor_starts.since = Some(agent.started_at);
        status.work.pool = agent.admission.statistics();
        status.work.queued = agent.admission.statuses(&agent.args);
        status.work.running = agent.running.paused_statuses();
        status.work.last_execution.clone_from(&agent.last_outcome);
        Self { status, executions: agent.running.actors() }
    }
}

impl AgentArgs {
    /// Returns the status of an agent that has done no work.
    fn status_without_work(&self, is_stopping: bool) -> AgentStatus {
        let spec = &self.spec;
        let health = if is_stopping {
            Health::Draining
        } else if spec.unavailable_failure().is_some() {
            Health::Unavailable
        } else {
            Health::Alive
        };
        let mut status = AgentStatus::from_spec(spec, health);
        status.work.pooled_processes = self.driver.pooled_processes();
        status.budget = self.budget_status();
        status
    }
}
