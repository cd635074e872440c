//! Daily budget of an agent: no execution starts once the budget is exhausted.

use super::AgentArgs;
use crate::decide::budget::{check_day_limits, day_budget_status, today};
use crate::model::agent::budget::{BudgetStatus, Charge};
use crate::model::failure::Failure;
use crate::ports::ledger::LedgerError;

/// Reads the amounts used today from the ledger, unless they are known.
pub(super) async fn load(args: &AgentArgs) -> Result<(), LedgerError> {
    let AgentArgs { spec, services, .. } = args;
    let day = today(spec.budget.zone, services.clock.now());
    if services.budget_usages.spent(&spec.id, day).is_none() {
        let spent = services.ledger.spent(&spec.id, day).await?;
        services.budget_usages.load(&spec.id, day, spent);
    }
    services.report_budget_usage(spec);
    Ok(())
}

impl AgentArgs {
    /// Checks whether further work may start today.
    pub(super) fn check_budget(&self) -> Result<(), Failure> {
        let spec = &self.spec;
        if spec.budget.day.is_empty() {
            return Ok(());
        }
        check_day_limits(&spec.budget, &spec.id, self.spent(), self.services.clock.now())
    }

    /// Returns the budget status, if the agent has a budget or has used anything.
    pub(super) fn budget_status(&self) -> Option<BudgetStatus> {
        let (budget, spent) = (&self.spec.budget, self.spent());
        let is_shown = !budget.day.is_empty() || !spent.is_zero();
        is_shown.then(|| day_budget_status(budget, spent, self.services.clock.now()))
    }

    fn spent(&self) -> Charge {
        let day = today(self.spec.budget.zone, self.services.clock.now());
        self.services.budget_usages.spent(&self.spec.id, day).unwrap_or_default()
    }
}
