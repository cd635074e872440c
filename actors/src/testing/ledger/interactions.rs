//! In-memory store of interactions and permission decisions: uses the same rows as the ledger.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::MemoryLedger;
use super::interaction_row::InteractionRow;
use super::rows::LedgerRows;
use crate::model::execution::{AttemptId, ExecutionState, Fence};
use crate::model::id::{AgentId, ExecutionId};
use crate::model::interaction::{
    Interaction, InteractionEnd, InteractionFilter, InteractionId, InteractionRequestKey,
    InteractionState,
};
use crate::model::permission::{DecisionFilter, PermissionDecision};
use crate::ports::interaction_store::reports::{
    closed_event, lost_interaction_end, opened_event, permission_decision,
};
use crate::ports::interaction_store::{
    CloseInteractionOutcome, InteractionStore, OpenInteractionOutcome,
};
use crate::ports::ledger::LedgerError;
use crate::testing::fault_injection::LedgerCallKind;

#[async_trait]
impl InteractionStore for MemoryLedger {
    async fn open(
        &self,
        mut interaction: Interaction,
        fence: Fence,
    ) -> Result<OpenInteractionOutcome, LedgerError> {
        self.inject_fault(LedgerCallKind::Interaction).await?;
        let mut rows = self.rows.lock().await;
        let team_runs = rows.ancestor_team_runs(interaction.request_key.execution);
        let LedgerRows { executions, interactions, violations, .. } = &mut *rows;
        let Some(row) = executions.get_mut(&interaction.request_key.execution) else {
            return Ok(OpenInteractionOutcome::Superseded);
        };
        let is_at_work =
            matches!(row.record.state, ExecutionState::Starting | ExecutionState::Running);
        if row.record.fence != fence || row.record.outcome.is_some() || !is_at_work {
            return Ok(OpenInteractionOutcome::Superseded);
        }
        let is_same_request = |existing: &&InteractionRow| {
            existing.interaction.request_key == interaction.request_key
        };
        if let Some(existing) = interactions.values().find(is_same_request) {
            return Ok(OpenInteractionOutcome::Existing(Box::new(
                existing.interaction_with_raw_end(),
            )));
        }
        row.append_and_apply(interaction.opened_at, opened_event(&interaction), violations);
        for run in &team_runs {
            let Some(row) = executions.get_mut(run) else { continue };
            interaction.origin.teams.push(row.record.agent.clone());
            if row.record.outcome.is_none() {
                row.append_and_apply(interaction.opened_at, opened_event(&interaction), violations);
            }
        }
        interactions
            .insert(interaction.id, InteractionRow { interaction, raw_end: None, team_runs });
        Ok(OpenInteractionOutcome::New)
    }

    async fn close(
        &self,
        id: InteractionId,
        end: InteractionEnd,
        redacted_end: InteractionEnd,
    ) -> Result<CloseInteractionOutcome, LedgerError> {
        self.inject_fault(LedgerCallKind::Interaction).await?;
        let mut rows = self.rows.lock().await;
        let Some(row) = rows.interactions.get(&id) else {
            return Ok(CloseInteractionOutcome::Unknown);
        };
        if end.state == InteractionState::Open || end.state != redacted_end.state {
            let cause = format!("the end of interaction {id} is none");
            return Err(LedgerError::Unavailable { cause });
        }
        if !row.interaction.is_open() {
            return Ok(CloseInteractionOutcome::AlreadyClosed(Box::new(
                row.interaction_with_raw_end(),
            )));
        }
        let raw_end = (end != redacted_end).then_some(end);
        let closed = rows
            .close_interaction(id, &redacted_end, raw_end)
            .map(|closed| CloseInteractionOutcome::Closed(Box::new(closed)));
        Ok(closed.unwrap_or(CloseInteractionOutcome::Unknown))
    }

    async fn record_answer_delivery(
        &self,
        id: InteractionId,
        at: DateTime<Utc>,
    ) -> Result<(), LedgerError> {
        self.inject_fault(LedgerCallKind::Interaction).await?;
        if let Some(row) = self.rows.lock().await.interactions.get_mut(&id)
            && !row.interaction.is_open()
        {
            row.raw_end = None;
            row.interaction.delivered_at = row.interaction.delivered_at.or(Some(at));
        }
        Ok(())
    }

    async fn interaction(&self, id: InteractionId) -> Result<Option<Interaction>, LedgerError> {
        self.inject_fault(LedgerCallKind::Read).await?;
        Ok(self
            .rows
            .lock()
            .await
            .interactions
            .get(&id)
            .map(InteractionRow::interaction_with_raw_end))
    }

    async fn find_by_request_key(
        &self,
        request_key: &InteractionRequestKey,
    ) -> Result<Option<Interaction>, LedgerError> {
        self.inject_fault(LedgerCallKind::Read).await?;
        let rows = self.rows.lock().await;
        let has_request_key = |row: &&InteractionRow| row.interaction.request_key == *request_key;
        Ok(rows.interactions.values().find(has_request_key).map(|row| row.interaction.clone()))
    }

    async fn interactions(
        &self,
        filter: InteractionFilter,
    ) -> Result<Vec<Interaction>, LedgerError> {
        self.inject_fault(LedgerCallKind::List).await?;
        let rows = self.rows.lock().await;
        let newest_first = rows.interactions.values().rev();
        let matching = newest_first.filter(|row| matches_filter(&filter, row));
        let interactions = matching.map(|row| row.interaction.clone());
        Ok(interactions.take(max_results(filter.limit)).collect())
    }

    async fn record_decision(&self, decision: PermissionDecision) -> Result<(), LedgerError> {
        self.inject_fault(LedgerCallKind::Interaction).await?;
        self.rows.lock().await.decisions.push(decision);
        Ok(())
    }

    async fn decisions(
        &self,
        filter: DecisionFilter,
    ) -> Result<Vec<(u64, PermissionDecision)>, LedgerError> {
        self.inject_fault(LedgerCallKind::List).await?;
        let rows = self.rows.lock().await;
        let numbered = (1_u64..).zip(&rows.decisions);
        let matching = numbered.filter(|(number, decision)| {
            *number > filter.after
                && filter.agent.as_ref().is_none_or(|agent| decision.agent == *agent)
                && filter.execution.is_none_or(|execution| decision.execution == execution)
        });
        let cloned = matching.map(|(number, decision)| (number, decision.clone()));
        Ok(cloned.take(max_results(filter.limit)).collect())
    }
}

impl LedgerRows {
    /// Closes the open interactions of earlier attempts of an execution, and erases their raw answers.
    pub(super) fn close_interactions_before(
        &mut self,
        id: ExecutionId,
        next_attempt: AttemptId,
        at: DateTime<Utc>,
    ) {
        self.close_matching_interactions(id, &lost_interaction_end(at), |attempt| {
            attempt != next_attempt
        });
    }

    /// Closes the open interactions of an execution whose attempts fit, and erases their raw answers: nobody will
    /// deliver them.
    pub(super) fn close_matching_interactions(
        &mut self,
        id: ExecutionId,
        end: &InteractionEnd,
        fits: impl Fn(AttemptId) -> bool,
    ) {
        let mut open_ids = Vec::new();
        for (key, row) in &mut self.interactions {
            let InteractionRequestKey { execution, attempt_id: attempt, .. } =
                row.interaction.request_key;
            if execution == id && fits(attempt) {
                row.raw_end = None;
                open_ids.extend(row.interaction.is_open().then_some(*key));
            }
        }
        for id in open_ids {
            self.close_interaction(id, end, None);
        }
    }

    /// Closes an open interaction, and returns it with its raw end.
    fn close_interaction(
        &mut self,
        id: InteractionId,
        redacted_end: &InteractionEnd,
        raw_end: Option<InteractionEnd>,
    ) -> Option<Interaction> {
        let row = self.interactions.get_mut(&id)?;
        row.interaction.state = redacted_end.state;
        row.interaction.end = Some(redacted_end.clone());
        row.raw_end = raw_end;
        self.decisions.extend(permission_decision(&row.interaction, redacted_end));
        let execution_row = self.executions.get_mut(&row.interaction.request_key.execution)?;
        execution_row.append_and_apply(
            redacted_end.at,
            closed_event(id, redacted_end),
            &mut self.violations,
        );
        for run in &row.team_runs {
            let run_row = self.executions.get_mut(run);
            if let Some(run_row) = run_row.filter(|run_row| run_row.record.outcome.is_none()) {
                run_row.append_and_apply(
                    redacted_end.at,
                    closed_event(id, redacted_end),
                    &mut self.violations,
                );
            }
        }
        Some(row.interaction_with_raw_end())
    }

    /// Returns the runs of teams that sent an execution on, the outermost first.
    fn ancestor_team_runs(&self, id: ExecutionId) -> Vec<ExecutionId> {
        let parent =
            |id: ExecutionId| Some(self.executions.get(&id)?.record.trigger.hop_position()?.parent);
        let mut team_runs: Vec<_> = std::iter::successors(parent(id), |run| parent(*run)).collect();
        team_runs.reverse();
        team_runs
    }
}

fn matches_filter(filter: &InteractionFilter, row: &InteractionRow) -> bool {
    let InteractionRow { interaction, team_runs, .. } = row;
    let Interaction { origin, request_key, .. } = interaction;
    let is_of_execution =
        |execution| request_key.execution == execution || team_runs.contains(&execution);
    let is_on_path =
        |agents: &Vec<AgentId>| origin.agent_path().any(|agent| agents.contains(agent));
    filter.id.is_none_or(|id| interaction.id == id)
        && filter.owner.is_none_or(|principal| origin.owner == principal)
        && filter.agents.as_ref().is_none_or(is_on_path)
        && filter.execution.is_none_or(is_of_execution)
        && filter.state.is_none_or(|state| interaction.state == state)
        && filter.before_id.is_none_or(|before| interaction.id < before)
}

fn max_results(limit: u32) -> usize {
    if limit == 0 { usize::MAX } else { limit as usize }
}
