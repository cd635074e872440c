//! Daily budget of an agent: no execution starts once the budget is exhausted.

use super::AgentArgs;
use crate::decide::budget::{check_day_limits, day_budget_status, today};
use crate::model::agent::budget::{BudgetStatus, Charge};
use crate::model::failure::Failure;
use crate::ports::ledger::LedgerError;

/// Reads the amounts used today from the ledger, unless they are known.
pub(super) async fn load_day_charge(args: &AgentArgs) -> Result<(), LedgerError> {
    let AgentArgs { spec, services, .. } = args;
    let day = today(spec.budget.zone, services.clock.now());
    if services.budget_usages.day_charge(&spec.id, day).is_none() {
        let spent = services.ledger.spent_on_day(&spec.id, day).await?;
        services.budget_usages.set_day_charge(&spec.id, day, spent);
    }
    services.report_budget_usage(spec);
    Ok(())
}

impl AgentArgs {
    /// Checks whether further work may start today.
    pub(super) fn check_budget(&self) -> Result<(), Failure> {
        let spec = &self.spec;
        if spec.budget.daily_limits.is_empty() {
            return Ok(());
        }
        check_day_limits(&spec.budget, &spec.id, self.charge_today(), self.services.clock.now())
    }

    /// Returns the budget status, if the agent has a budget or has used anything.
    pub(super) fn budget_status(&self) -> Option<BudgetStatus> {
        let (budget, spent) = (&self.spec.budget, self.charge_today());
        let is_shown = !budget.daily_limits.is_empty() || !spent.is_zero();
        is_shown.then(|| day_budget_status(budget, spent, self.services.clock.now()))
    }

    fn charge_today(&self) -> Charge {
        let day = today(self.spec.budget.zone, self.services.clock.now());
        self.services.budget_usages.day_charge(&self.spec.id, day).unwrap_or_default()
    }
}
