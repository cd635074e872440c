//! An agent as it shows itself.

use ractor::ActorRef;

use super::AgentData;
use crate::execution::ExecutionMsg;
use crate::model::id::ExecutionId;
use crate::model::status::{AgentStatus, Health};

/// The living executions of an agent, to be asked one by one.
pub struct AgentView {
    /// The agent; `running` is empty and to be filled from `executions`.
    pub status: AgentStatus,
    /// Each execution that has an actor.
    pub executions: Vec<(ExecutionId, ActorRef<ExecutionMsg>)>,
}

impl AgentData {
    /// The agent as it is now.
    pub(super) fn view(&self) -> AgentView {
        let spec = &self.args.spec;
        let is_ending = self.draining.is_some() || self.leaving.is_some();
        let health = if is_ending { Health::Draining } else { Health::Alive };
        let status = AgentStatus {
            id: spec.id.clone(),
            name: spec.name.clone(),
            health,
            enabled: spec.enabled,
            enforcement: spec.enforcement,
            isolation: spec.isolation,
            resources: spec.holding,
            program: None,
            since: Some(self.since),
            restarts: 0,
            last_fault: None,
            capacity: spec.capacity.running.map(Into::into),
            queue_depth: spec.capacity.waiting,
            pool: self.counts.told(),
            running: Vec::new(),
            kept: self.args.driver.kept(),
            queued: self.queued(),
            last: self.last.clone(),
            budget: self.budget(),
        };
        let executions = self.live.iter().map(|(id, live)| (*id, live.actor.clone())).collect();
        AgentView { status, executions }
    }
}
