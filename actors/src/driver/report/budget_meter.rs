//! Meter that adds the used amounts of an agent to its day.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::budget_usage::BudgetUsageCache;
use crate::decide::budget::today;
use crate::model::agent::AgentSpec;
use crate::model::agent::budget::Charge;
use crate::model::execution::event::EventKind;
use crate::model::id::AgentId;

/// Budget meter of one agent.
#[derive(Clone)]
pub struct BudgetMeter {
    agent: AgentId,
    zone: Tz,
    budget_usages: BudgetUsageCache,
}

impl BudgetMeter {
    /// Creates the meter of an agent.
    #[must_use]
    pub fn new(spec: &AgentSpec, budget_usages: &BudgetUsageCache) -> Self {
        Self {
            agent: spec.id.clone(),
            zone: spec.budget.zone,
            budget_usages: budget_usages.clone(),
        }
    }

    /// Returns the event for amounts that are used now; `None` if all are 0.
    #[must_use]
    pub fn charge_event(&self, now: DateTime<Utc>, charge: Charge) -> Option<EventKind> {
        let day = today(self.zone, now);
        (!charge.is_zero()).then_some(EventKind::BudgetCharged { day, charge })
    }

    /// Adds the amounts of an event that is or will be recorded in the ledger.
    pub fn apply_charge_event(&self, event: Option<&EventKind>) {
        if let Some(EventKind::BudgetCharged { day, charge }) = event {
            self.budget_usages.add(&self.agent, *day, *charge);
        }
    }
}
