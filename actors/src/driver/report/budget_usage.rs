//! Cache of the amounts that each agent has used today, so that a request is checked without the ledger.
//!
//! The cache outlives the actors that update it. After a restart it is filled from the ledger.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::NaiveDate;
use tokio::sync::watch;

use crate::decide::budget::{budget_alert_input, today};
use crate::decide::notification::alert::AlertInput;
use crate::model::agent::AgentSpec;
use crate::model::agent::budget::Charge;
use crate::model::id::AgentId;
use crate::ports::clock::Clock;

/// Used amounts of all agents. Clones are cheap.
#[derive(Clone, Default)]
pub struct BudgetUsageCache(Arc<watch::Sender<BTreeMap<AgentId, BudgetUsage>>>);

/// Used amounts of an agent on its latest day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct BudgetUsage {
    day: NaiveDate,
    spent: Charge,
}

impl BudgetUsageCache {
    /// Returns the amounts that an agent has used on a day; `None` if they are unknown.
    pub(crate) fn day_charge(&self, agent: &AgentId, day: NaiveDate) -> Option<Charge> {
        let budget_usages = self.0.borrow();
        budget_usages
            .get(agent)
            .filter(|budget_usage| budget_usage.day == day)
            .map(|budget_usage| budget_usage.spent)
    }

    /// Returns the alert input for an agent's day; `None` if it has no limits.
    pub(crate) fn alert_input(&self, spec: &AgentSpec, clock: &dyn Clock) -> Option<AlertInput> {
        let budget = Some(&spec.budget).filter(|budget| !budget.daily_limits.is_empty())?;
        let now = clock.now();
        let spent = self.day_charge(&spec.id, today(budget.zone, now)).unwrap_or_default();
        budget_alert_input(budget, &spec.id, spent, now)
    }

    /// Sets the used amounts from the ledger, which includes all amounts added meanwhile.
    pub(crate) fn set_day_charge(&self, agent: &AgentId, day: NaiveDate, spent: Charge) {
        self.0.send_modify(|budget_usages| {
            _ = budget_usages.insert(agent.clone(), BudgetUsage { day, spent });
        });
    }

    /// Sets the used amounts of many agents.
    pub(crate) fn set_day_charges(
        &self,
        usages: impl Iterator<Item = (AgentId, NaiveDate, Charge)>,
    ) {
        let usages = usages.map(|(agent, day, spent)| (agent, BudgetUsage { day, spent }));
        self.0.send_modify(|budget_usages| budget_usages.extend(usages));
    }

    /// Adds amounts to a day. A later day starts at zero.
    pub(crate) fn add(&self, agent: &AgentId, day: NaiveDate, charge: Charge) {
        self.0.send_modify(|budget_usages| {
            let budget_usage = budget_usages.entry(agent.clone()).or_default();
            if budget_usage.day < day {
                *budget_usage = BudgetUsage { day, spent: Charge::default() };
            }
            if budget_usage.day == day {
                budget_usage.spent = budget_usage.spent.plus(charge);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daily_usage_starts_at_zero_and_past_days_are_ignored() {
        let (budget_usages, agent) = (BudgetUsageCache::default(), AgentId::new("helper").unwrap());
        let day = |day| NaiveDate::from_ymd_opt(2027, 1, day).unwrap();
        let turns = |turns| Charge { turns, ..Charge::default() };
        budget_usages.set_day_charge(&agent, day(15), turns(5));
        budget_usages.add(&agent, day(15), turns(2));
        assert_eq!(budget_usages.day_charge(&agent, day(15)), Some(turns(7)));
        budget_usages.add(&agent, day(16), turns(1));
        budget_usages.add(&agent, day(15), turns(9));
        assert_eq!(budget_usages.day_charge(&agent, day(16)), Some(turns(1)));
        assert_eq!(budget_usages.day_charge(&agent, day(15)), None);
    }
}
