//! Backpressure of an agent: while the machine is short of a resource, or the agent's program is not
//! installed, the agent accepts no new request and starts no queued one. Running executions continue.

use super::AgentArgs;
use crate::maintenance::monitor::{is_pressure_high, pressure_refusal};
use crate::model::failure::Failure;

impl AgentArgs {
    /// Returns true if no queued request may start for now.
    pub(super) fn is_suspended(&self) -> bool {
        is_pressure_high(&self.pressure.borrow()) || self.spec.unavailable_failure().is_some()
    }

    /// Returns the reason why new work is rejected for now.
    pub(super) fn pressure_failure(&self) -> Option<Failure> {
        pressure_refusal(&self.pressure.borrow())
    }
}
