//! Preload of ledger data for all agents before their start: separate reads would take as many queries as there are
//! agents.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;

use super::agents::AgentChildren;
use super::context::RootContext;
use crate::decide::budget::today;
use crate::decide::recovery::interruption_failure;
use crate::execution::recovery::{cancel_orphaned_hop, settle_as_failed};
use crate::model::agent::team::TeamPlan;
use crate::model::execution::record::{ExecutionFilter, ExecutionRecord};
use crate::model::id::{AgentId, ExecutionId};
use crate::ports::ledger::LedgerError;

/// Settles the executions of agents that are no longer configured, and the hops whose runs have ended. Returns the
/// agents with other unfinished ones, which is true until the agents start.
pub(super) async fn triage_unfinished_executions(
    agents: &AgentChildren,
    context: &RootContext,
) -> Result<BTreeSet<AgentId>, LedgerError> {
    let services = &context.services;
    let filter = ExecutionFilter { unfinished_only: true, ..ExecutionFilter::default() };
    let records = services.ledger.executions(filter).await?;
    let runs = UnfinishedRuns::from_records(agents, &records);
    let mut agents_to_recover = BTreeSet::new();
    for record in &records {
        match agents.get(&record.agent) {
            child if !runs.may_continue(record) => {
                // A run has nothing but its hops, which are among these records.
                let child = child.filter(|child| child.definition.spec.team().is_none());
                let driver = child.map(|child| &*child.definition.driver);
                cancel_orphaned_hop(services, driver, record).await?;
            }
            Some(child) => {
                let spec = &child.definition.spec;
                services.breakers.restore_block((&services.keyed_hasher, spec), record);
                agents_to_recover.insert(record.agent.clone());
            }
            None => settle_as_failed(services, record, interruption_failure()).await?,
        }
    }
    Ok(agents_to_recover)
}

/// Runs of teams that have not ended and continue, each with the run whose hop it is.
struct UnfinishedRuns(BTreeMap<ExecutionId, Option<ExecutionId>>);

impl UnfinishedRuns {
    /// Returns the runs among these executions. The execution of an agent that is no team any more is no run.
    fn from_records(agents: &AgentChildren, records: &[ExecutionRecord]) -> Self {
        let is_team = |agent: &AgentId| {
            agents.get(agent).is_some_and(|child| child.definition.spec.team().is_some())
        };
        let runs = records.iter().filter(|record| is_team(&record.agent));
        Self(runs.map(|run| (run.id, run.trigger.hop_position().map(|hop| hop.parent))).collect())
    }

    /// Returns true if the execution is no hop, or if its run and the runs above it continue.
    fn may_continue(&self, record: &ExecutionRecord) -> bool {
        let mut run = record.trigger.hop_position().map(|hop| hop.parent);
        // Teams are nested a few levels deep; a longer chain is none that this service has recorded.
        for _ in 0..=TeamPlan::MAX_DEPTH {
            let Some(id) = run else { return true };
            match self.0.get(&id) {
                Some(parent) => run = *parent,
                None => return false,
            }
        }
        false
    }
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
    let spent_by_agent = services.ledger.spent_by_all_agents(&days).await?;
    let usages = agents.iter().map(|child| {
        let spec = &child.definition.spec;
        let day = today(spec.budget.zone, now);
        let spent = spent_by_agent.get(&(spec.id.clone(), day)).copied().unwrap_or_default();
        (spec.id.clone(), day, spent)
    });
    services.budget_usages.set_day_charges(usages);
    Ok(())
}
