//! Backpressure of an agent: while the machine is short of a resource or has a fault, or the agent's program is not
//! installed, the agent accepts no new request and starts no queued one. Running executions continue.

use super::AgentArgs;
use crate::decide::host::refusal::host_condition_failure;
use crate::model::agent::AgentKind;
use crate::model::failure::Failure;

impl AgentArgs {
    /// Returns true if no queued request may start for now.
    pub(super) fn is_queue_suspended(&self) -> bool {
        self.host_condition.borrow().refuses_work(self.starts_program())
            || self.spec.unavailable_failure().is_some()
    }

    /// Returns the reason why the machine permits no new work for now.
    pub(super) fn host_failure(&self) -> Option<Failure> {
        host_condition_failure(&self.host_condition.borrow(), self.starts_program())
    }

    /// Returns true if the agent's work starts a program. The tools of a cognitive agent report faults themselves.
    fn starts_program(&self) -> bool {
        self.spec.kind() == AgentKind::Program
    }
}
