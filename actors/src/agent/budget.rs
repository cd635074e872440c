//! What an agent may use up in a day: nothing begins once that is used up.

use super::{AgentArgs, AgentData};
use crate::decide::budget::{day, status, today};
use crate::model::budget::{BudgetStatus, Charge};
use crate::model::failure::Failure;
use crate::ports::ledger::LedgerError;

/// Reads what was used up today, unless that is known.
pub(super) async fn load(args: &AgentArgs) -> Result<(), LedgerError> {
    let AgentArgs { spec, kit, .. } = args;
    let day = today(spec.budget.zone, kit.clock.now());
    if kit.purses.spent(&spec.id, day).is_none() {
        let spent = kit.ledger.spent(&spec.id, day).await?;
        kit.purses.fill(&spec.id, day, spent);
    }
    kit.tell_spent(spec);
    Ok(())
}

impl AgentData {
    /// Decides whether anything more may begin today.
    pub(super) fn within_budget(&self) -> Result<(), Failure> {
        let spec = &self.args.spec;
        if spec.budget.day.is_empty() {
            return Ok(());
        }
        day(&spec.budget, &spec.id, self.spent(), self.args.kit.clock.now())
    }

    /// What is used up and left, where there is a budget or something was used up.
    pub(super) fn budget(&self) -> Option<BudgetStatus> {
        let (budget, spent) = (&self.args.spec.budget, self.spent());
        let is_told = !budget.day.is_empty() || !spent.is_nothing();
        is_told.then(|| status(budget, spent, self.args.kit.clock.now()))
    }

    fn spent(&self) -> Charge {
        let day = today(self.args.spec.budget.zone, self.args.kit.clock.now());
        self.args.kit.purses.spent(&self.args.spec.id, day).unwrap_or_default()
    }
}
