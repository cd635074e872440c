//! Preload of ledger data for all agents before their start: separate reads would take as many queries as there are
//! agents.

use std::collections::BTreeSet;

use chrono::TimeDelta;

use super::agents::AgentChildren;
use super::context::RootContext;
use crate::decide::budget::today;
use crate::decide::recovery::interruption_failure;
use crate::execution::recover::fail_execution;
use crate::model::execution::record::ExecutionFilter;
use crate::model::id::AgentId;
use crate::ports::ledger::LedgerError;

/// Settles the executions of agents that are no longer configured. Returns the other agents with unfinished ones, which
/// is true until the agents start.
pub(super) async fn settle_unowned(
    agents: &AgentChildren,
    context: &RootContext,
) -> Result<BTreeSet<AgentId>, LedgerError> {
    let services = &context.services;
    let filter = ExecutionFilter { unfinished: true, ..ExecutionFilter::default() };
    let mut unfinished = BTreeSet::new();
    for record in services.ledger.executions(filter).await? {
        match agents.get(&record.agent) {
            Some(child) => {
                let spec = &child.definition.spec;
                services.breakers.restore((&services.keyring, spec), &record);
                unfinished.insert(record.agent);
            }
            None => fail_execution(services, &record, interruption_failure()).await?,
        }
    }
    Ok(unfinished)
}

/// Loads the amounts that each agent has used today, in its own time zone.
pub(super) async fn load_budget_usage(
    agents: &AgentChildren,
    context: &RootContext,
) -> Result<(), LedgerError> {
    let services = &context.services;
    let now = services.clock.now();
    // The time zones of the earth are on three days at most.
    let days = [-1, 0, 1].map(|days| (now + TimeDelta::days(days)).date_naive());
    let spent_by_agent = services.ledger.spent_by_all(&days).await?;
    let usages = agents.iter().map(|child| {
        let spec = &child.definition.spec;
        let day = today(spec.budget.zone, now);
        let spent = spent_by_agent.get(&(spec.id.clone(), day)).copied().unwrap_or_default();
        (spec.id.clone(), day, spent)
    });
    services.budget_usages.load_all(usages);
    Ok(())
}
