//! What the root looks up for all agents at once before it starts them: one by one it would take as
//! many reads as there are agents.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use ractor::{ActorProcessingErr, ActorRef};

use super::{RootData, RootMsg};
use crate::decide::budget::today;
use crate::decide::recovery::interrupted;
use crate::model::record::Filter;
use crate::ports::ledger::LedgerError;
use crate::recover::fail;

impl RootData {
    /// Settles what nobody will take up, and starts every agent.
    pub(super) async fn start_agents(
        &mut self,
        me: &ActorRef<RootMsg>,
    ) -> Result<(), ActorProcessingErr> {
        self.fill_purses().await?;
        for id in self.parts.keys().cloned().collect::<Vec<_>>() {
            let begins_anew = !self.unfinished.contains(&id);
            self.start_agent(me, &id, begins_anew).await?;
        }
        self.unfinished = BTreeSet::new(); // From here on they change.
        Ok(())
    }

    /// Ends the executions of agents that are not configured any more; notes which others have some.
    pub(super) async fn settle_the_homeless(&mut self) -> Result<(), ActorProcessingErr> {
        let filter = Filter { unfinished: true, ..Filter::default() };
        for record in self.kit.ledger.executions(filter).await? {
            match self.parts.get(&record.agent) {
                Some(part) => {
                    self.kit.circuits.recall((&self.kit.keyring, &part.seat.spec), &record);
                    self.unfinished.insert(record.agent);
                }
                None => fail(&self.kit, &record, interrupted()).await?,
            }
        }
        Ok(())
    }

    /// Fills the purse of each agent with what it has used up today, wherever its day begins.
    async fn fill_purses(&self) -> Result<(), LedgerError> {
        let now = self.kit.clock.now();
        let days = [-1, 0, 1].map(|days| (now + TimeDelta::days(days)).date_naive());
        let spent = self.kit.ledger.spent_by_all(&days).await?;
        let specs = self.parts.iter().map(|(id, part)| (id, &part.seat.spec));
        let today = specs.map(|(id, spec)| {
            let day = today(spec.budget.zone, now);
            let spent = spent.get(&(id.clone(), day)).copied().unwrap_or_default();
            (id.clone(), day, spent)
        });
        self.kit.purses.fill_all(today);
        Ok(())
    }
}
