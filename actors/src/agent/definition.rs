//! Definition of an agent, as the root hands it to the agent's actor, and the deadlines that it sets.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::AgentArgs;
use crate::driver::Driver;
use crate::model::agent::AgentSpec;
use crate::model::execution::record::ExecutionRecord;

/// Definition of an agent with its driver.
#[derive(Clone)]
pub struct AgentDefinition {
    /// Specification of the agent.
    pub spec: Arc<AgentSpec>,
    /// Driver of the agent's work.
    pub driver: Arc<dyn Driver>,
}

impl AgentArgs {
    /// Returns the present definition of the agent.
    pub(super) fn definition(&self) -> AgentDefinition {
        AgentDefinition { spec: self.spec.clone(), driver: self.driver.clone() }
    }

    /// Returns the queue deadline of an entry that has already waited.
    pub(super) fn queue_deadline(&self, waited: Duration) -> Instant {
        let remaining = self.spec.limits.capacity.queue_timeout.saturating_sub(waited);
        let now = Instant::now();
        now.checked_add(remaining).unwrap_or(now)
    }

    /// Returns the age of a stored time, which only the wall clock can measure.
    pub(super) fn age(&self, at: DateTime<Utc>) -> Duration {
        (self.services.clock.now() - at).to_std().unwrap_or_default()
    }

    /// Returns the remaining time of an open question.
    pub(super) fn remaining_answer_time(&self, record: &ExecutionRecord) -> Duration {
        self.spec.limits.timeouts.question.saturating_sub(self.age(record.changed_at))
    }
}
