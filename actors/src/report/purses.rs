//! What each agent has used up today, beside the ledger, so that a request is judged at once.
//!
//! It outlives the actors that add to it. After a restart it is filled from the ledger.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::NaiveDate;
use tokio::sync::watch;

use crate::decide::alert::Sighting;
use crate::decide::budget::{sighting, today};
use crate::model::agent::AgentSpec;
use crate::model::budget::Charge;
use crate::model::id::AgentId;
use crate::ports::clock::Clock;

/// The purses of a service. Cheap to clone.
#[derive(Clone, Default)]
pub struct Purses(Arc<watch::Sender<BTreeMap<AgentId, Purse>>>);

/// What was used up in the latest day of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Purse {
    day: NaiveDate,
    spent: Charge,
}

impl Purses {
    /// What an agent has used up in a day; `None` when nobody knows.
    pub(crate) fn spent(&self, agent: &AgentId, day: NaiveDate) -> Option<Charge> {
        let purses = self.0.borrow();
        purses.get(agent).filter(|purse| purse.day == day).map(|purse| purse.spent)
    }

    /// What whoever watches is told of an agent's day; `None` where it has no bounds.
    pub(crate) fn sighting(&self, spec: &AgentSpec, clock: &dyn Clock) -> Option<Sighting> {
        let budget = Some(&spec.budget).filter(|budget| !budget.day.is_empty())?;
        let now = clock.now();
        let spent = self.spent(&spec.id, today(budget.zone, now)).unwrap_or_default();
        sighting(budget, &spec.id, spent, now)
    }

    /// The ledger knows what was used up. What has been added meanwhile is in it already.
    pub(crate) fn fill(&self, agent: &AgentId, day: NaiveDate, spent: Charge) {
        self.0.send_modify(|purses| _ = purses.insert(agent.clone(), Purse { day, spent }));
    }

    /// The same of many agents.
    pub(crate) fn fill_all(&self, all: impl Iterator<Item = (AgentId, NaiveDate, Charge)>) {
        let all = all.map(|(agent, day, spent)| (agent, Purse { day, spent }));
        self.0.send_modify(|purses| purses.extend(all));
    }

    /// Something was used up that counts on this day. Another day begins with nothing.
    pub(crate) fn add(&self, agent: &AgentId, day: NaiveDate, charge: Charge) {
        self.0.send_modify(|purses| {
            let purse = purses.entry(agent.clone()).or_default();
            if purse.day < day {
                *purse = Purse { day, spent: Charge::default() };
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
    fn a_new_day_begins_with_nothing_and_a_past_one_counts_no_more() {
        let (purses, agent) = (Purses::default(), AgentId::new("helper").unwrap());
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
