//! Cache of the amounts that each agent has used today, so that a request is checked without the ledger.
//!
//! The cache outlives the actors that update it. After a restart it is filled from the ledger.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::NaiveDate;
use tokio::sync::watch;

use crate::decide::budget::{sighting, today};
use crate::decide::notification::alert::AlertInput;
use crate::model::agent::AgentSpec;
use crate::model::agent::budget::Charge;
use crate::model::id::AgentId;
use crate::ports::clock::Clock;

/// Used amounts of all agents. Clones are cheap.
#[derive(Clone, Default)]
pub struct BudgetUsages(Arc<watch::Sender<BTreeMap<AgentId, BudgetUsage>>>);

/// Used amounts of an agent on its latest day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct BudgetUsage {
    day: NaiveDate,
    spent: Charge,
}

impl BudgetUsages {
    /// Returns the amounts that an agent has used on a day; `None` if they are unknown.
    pub(crate) fn spent(&self, agent: &AgentId, day: NaiveDate) -> Option<Charge> {
        let purses = self.0.borrow();
        purses.get(agent).filter(|purse| purse.day == day).map(|purse| purse.spent)
    }

    /// Returns the alert input for an agent's day; `None` if it has no limits.
    pub(crate) fn sighting(&self, spec: &AgentSpec, clock: &dyn Clock) -> Option<AlertInput> {
        let budget = Some(&spec.budget).filter(|budget| !budget.day.is_empty())?;
        let now = clock.now();
        let spent = self.spent(&spec.id, today(budget.zone, now)).unwrap_or_default();
        sighting(budget, &spec.id, spent, now)
    }

    /// Sets the used amounts from the ledger, which includes all amounts added meanwhile.
    pub(crate) fn fill(&self, agent: &AgentId, day: NaiveDate, spent: Charge) {
        self.0.send_modify(|purses| _ = purses.insert(agent.clone(), BudgetUsage { day, spent }));
    }

    /// Sets the used amounts of many agents.
    pub(crate) fn fill_all(&self, all: impl Iterator<Item = (AgentId, NaiveDate, Charge)>) {
        let all = all.map(|(agent, day, spent)| (agent, BudgetUsage { day, spent }));
        self.0.send_modify(|purses| purses.extend(all));
    }

    /// Adds amounts to a day. A later day starts at zero.
    pub(crate) fn add(&self, agent: &AgentId, day: NaiveDate, charge: Charge) {
        self.0.send_modify(|purses| {
            let purse = purses.entry(agent.clone()).or_default();
            if purse.day < day {
                *purse = BudgetUsage { day, spent: Charge::default() };
            }
            if purse.day == day {
                purse.spent = purse.spent.plus(charge);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daily_usage_starts_at_zero_and_past_days_are_ignored() {
        let (purses, agent) = (BudgetUsages::default(), AgentId::new("helper").unwrap());
        let day = |day| NaiveDate::from_ymd_opt(2027, 1, day).unwrap();
        let turns = |turns| Charge { turns, ..Charge::default() };
        purses.fill(&agent, day(15), turns(5));
        purses.add(&agent, day(15), turns(2));
        assert_eq!(purses.spent(&agent, day(15)), Some(turns(7)));
        purses.add(&agent, day(16), turns(1));
        purses.add(&agent, day(15), turns(9));
        assert_eq!(purses.spent(&agent, day(16)), Some(turns(1)));
        assert_eq!(purses.spent(&agent, day(15)), None);
    }
}
