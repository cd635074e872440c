//! In-memory ledger. It fulfils the contract of the port, and records every violation by its callers.

mod execution_page;
mod history;
mod interaction_row;
mod interactions;
mod rows;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, Utc};
use tokio::sync::Mutex;
use uuid::Uuid;

use self::execution_page::{matches_query, sort_key};
use self::rows::{LedgerRows, MemoryExecutionRow};
use super::fault_injection::{FaultInjector, LedgerCallKind};
use crate::model::access::principal::{NewToken, Token};
use crate::model::agent::budget::Charge;
use crate::model::agent::queue::QueueReason;
use crate::model::execution::event::{Event, EventKind, TextChannel, TextChunk, TextRange};
use crate::model::execution::record::{
    ExecutionFilter, ExecutionPage, ExecutionPageQuery, ExecutionRecord,
};
use crate::model::execution::{AttemptId, ExecutionState, Fence};
use crate::model::id::{AgentId, ExecutionId, PrincipalId};
use crate::ports::interaction_store::reports::{
    interaction_end_at_settlement, last_transition_index,
};
use crate::ports::ledger::{
    AcceptCommand, AcceptResult, AnswerCommand, ClaimCommand, ClaimResult, Ledger, LedgerError,
    Settlement, WriteBatch,
};

/// Access to the rows. All accesses of one environment share the same rows.
#[derive(Clone, Default)]
pub struct MemoryLedger {
    rows: Arc<Mutex<LedgerRows>>,
    fault_injector: Option<Arc<FaultInjector>>,
}

impl MemoryLedger {
    /// Returns another access to the same rows, through a gate.
    pub(super) fn with_fault_injector(&self, fault_injector: Arc<FaultInjector>) -> Self {
        Self { rows: Arc::clone(&self.rows), fault_injector: Some(fault_injector) }
    }

    /// Adds a token for a principal with a known id.
    pub(super) async fn add_token(&self, principal: PrincipalId, new_token: NewToken) {
        let NewToken { name, hash, scope, expires_at: expires } = new_token;
        let token = Token { principal, principal_name: name, hash, scope, expires_at: expires };
        self.rows.lock().await.tokens.push(token);
    }

    /// Returns the violations by callers: transitions that are not in the table or do not follow the previous one.
    pub async fn violations(&self) -> Vec<String> {
        self.rows.lock().await.violations.clone()
    }

    /// Returns how many times the end of an execution was written or tried to be written.
    pub async fn settle_call_count(&self, id: ExecutionId) -> usize {
        let rows = self.rows.lock().await;
        rows.executions.get(&id).map_or(0, |row| row.settle_call_count)
    }

    /// Removes the raw input of an execution, as if redaction had changed it and it had not been sealed.
    pub async fn lose_raw_input(&self, id: ExecutionId) {
        if let Some(row) = self.rows.lock().await.executions.get_mut(&id) {
            (row.record.stores_raw_input, row.sealed_input) = (false, None);
        }
    }

    async fn inject_fault(&self, call: LedgerCallKind) -> Result<(), LedgerError> {
        match &self.fault_injector {
            Some(gate) => gate.inject_fault(call).await,
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    async fn accept(&self, command: AcceptCommand) -> Result<AcceptResult, LedgerError> {
        self.inject_fault(LedgerCallKind::Accept).await?;
        let mut rows = self.rows.lock().await;
        let known_requests: Vec<_> = command
            .keys
            .iter()
            .filter_map(|key| rows.find_by_key(command.owner, &command.agent, key))
            .collect();
        if let Some(earlier) = AcceptResult::for_known_keys(&known_requests, command.content_digest)
        {
            return Ok(earlier);
        }
        let equal_execution = rows.find_equal_execution(&command);
        let mut row = MemoryExecutionRow::new(command);
        row.coalescing_key = row.coalescing_key.filter(|_| equal_execution.is_none());
        rows.executions.insert(row.record.id, row);
        Ok(equal_execution.map_or(AcceptResult::Created, AcceptResult::CreatedWithEquivalent))
    }

    async fn record_answer(&self, command: AnswerCommand) -> Result<bool, LedgerError> {
        self.inject_fault(LedgerCallKind::Accept).await?;
        let mut rows = self.rows.lock().await;
        let mut keys = command.keys.iter();
        let is_duplicate =
            keys.any(|key| rows.find_by_key(command.owner, &command.agent, key).is_some());
        let LedgerRows { executions, violations, .. } = &mut *rows;
        let Some(row) = executions.get_mut(&command.id) else {
            return Ok(false);
        };
        let ExecutionRecord { outcome, fence, state, requested_input, .. } = row.record;
        let is_open = outcome.is_none()
            && state == ExecutionState::Waiting
            && !requested_input.has_pending_turn;
        if fence != command.fence || !is_open || is_duplicate {
            return Ok(false);
        }
        row.keys.extend(command.keys.iter().map(|key| (key, command.content_digest)));
        row.store_input(command.next_attempt_id, &command.input_text);
        row.record.requested_input.has_pending_turn = true;
        row.record.latest_deferral = None;
        row.record.params = command.params;
        row.record.overrides = command.overrides;
        (row.record.stores_raw_input, row.sealed_input) =
            (command.stores_raw_input, command.sealed_input);
        row.record.changed_at = command.at;
        let message_event = EventKind::caller_message(command.message_id.0, command.content);
        row.append_and_apply(command.at, message_event, violations);
        Ok(true)
    }

    async fn find_by_key(
        &self,
        owner: PrincipalId,
        agent: &AgentId,
        key: [u8; 32],
    ) -> Result<Option<(ExecutionId, [u8; 32])>, LedgerError> {
        self.inject_fault(LedgerCallKind::Read).await?;
        Ok(self.rows.lock().await.find_by_key(owner, agent, key))
    }

    async fn claim(&self, command: ClaimCommand) -> Result<ClaimResult, LedgerError> {
        self.inject_fault(LedgerCallKind::Claim).await?;
        let mut rows = self.rows.lock().await;
        let other_claim_holders =
            || rows.executions.values().filter(|row| row.is_other_claim_holder(command.id));
        let running_count =
            other_claim_holders().filter(|row| row.record.agent == command.agent).count();
        let is_workspace_taken = command.workspace.as_ref().is_some_and(|workspace| {
            let mut other_workspaces =
                other_claim_holders().filter_map(|row| row.workspace.as_ref());
            other_workspaces.any(|other| other.overlaps(workspace))
        });
        let is_conversation_busy =
            command.runs_turns_in_order && rows.is_blocked_by_other_message(command.id);
        let Some(row) = rows.executions.get(&command.id) else {
            return Ok(ClaimResult::Superseded);
        };
        if row.record.outcome.is_some() || row.record.fence != command.fence {
            return Ok(ClaimResult::Superseded);
        }
        if command.max_running.is_some_and(|limit| running_count >= limit as usize) {
            return Ok(ClaimResult::Busy(QueueReason::AgentBusy));
        }
        if is_workspace_taken {
            return Ok(ClaimResult::Busy(QueueReason::WorkspaceBusy));
        }
        if is_conversation_busy {
            return Ok(ClaimResult::Busy(QueueReason::ConversationBusy));
        }
        let ClaimCommand { id, workspace, state_change: change, .. } = command;
        rows.close_interactions_before(id, change.attempt_id, change.at);
        let LedgerRows { executions, violations, .. } = &mut *rows;
        let Some(row) = executions.get_mut(&id) else {
            return Ok(ClaimResult::Superseded);
        };
        row.workspace = workspace;
        row.record.fence = Fence(row.record.fence.0 + 1);
        row.record.started_at = row.record.started_at.or(Some(change.at));
        row.record.requested_input.has_pending_turn = false;
        row.append_and_apply(change.at, EventKind::StateChanged(change), violations);
        Ok(ClaimResult::Granted(row.record.fence))
    }

    async fn append_batch(
        &self,
        id: ExecutionId,
        fence: Fence,
        batch: WriteBatch,
    ) -> Result<bool, LedgerError> {
        self.inject_fault(LedgerCallKind::AppendBatch).await?;
        let mut rows = self.rows.lock().await;
        let LedgerRows { executions, violations, .. } = &mut *rows;
        let Some(row) = executions.get_mut(&id) else {
            return Ok(false);
        };
        let WriteBatch { chunks, events } = batch;
        row.chunks.extend(chunks);
        let is_refused_after_end =
            row.record.outcome.is_some() && !events.iter().all(|(_, event)| may_follow_end(event));
        if row.record.fence != fence || is_refused_after_end {
            return Ok(false);
        }
        for (at, event) in events {
            row.append_and_apply(at, event, violations);
        }
        Ok(true)
    }

    async fn append_chunk(&self, id: ExecutionId, chunk: TextChunk) -> Result<(), LedgerError> {
        self.inject_fault(LedgerCallKind::ChangeOutput).await?;
        if let Some(row) = self.rows.lock().await.executions.get_mut(&id) {
            let is_predecessor = |stored: &TextChunk| {
                (stored.attempt_id, stored.channel, stored.number + 1)
                    == (chunk.attempt_id, chunk.channel, chunk.number)
            };
            if chunk.number == 0 || row.chunks.iter().any(is_predecessor) {
                row.chunks.push(chunk);
            }
        }
        Ok(())
    }

    async fn delete_output(
        &self,
        id: ExecutionId,
        attempt_id: AttemptId,
    ) -> Result<(), LedgerError> {
        self.inject_fault(LedgerCallKind::ChangeOutput).await?;
        if let Some(row) = self.rows.lock().await.executions.get_mut(&id) {
            row.chunks.retain(|chunk| {
                chunk.attempt_id != attempt_id || chunk.channel == TextChannel::Input
            });
        }
        Ok(())
    }

    async fn settle(&self, settlement: Settlement) -> Result<bool, LedgerError> {
        self.inject_fault(LedgerCallKind::Settle).await?;
        let mut rows = self.rows.lock().await;
        let LedgerRows { executions, violations, .. } = &mut *rows;
        let Some(row) = executions.get_mut(&settlement.id) else {
            violations.push(format!("{} was settled and never accepted", settlement.id));
            return Ok(false);
        };
        row.settle_call_count += 1;
        let WriteBatch { chunks, mut events } = settlement.batch;
        row.chunks.extend(chunks);
        if row.record.outcome.is_some() || row.record.fence != settlement.fence {
            return Ok(false);
        }
        let last_events = events.split_off(last_transition_index(&events));
        for (at, event) in events {
            row.append_and_apply(at, event, violations);
        }
        let end = interaction_end_at_settlement(settlement.outcome, settlement.at);
        rows.close_matching_interactions(settlement.id, &end, |_| true);
        let LedgerRows { executions, violations, .. } = &mut *rows;
        let Some(row) = executions.get_mut(&settlement.id) else {
            return Ok(false);
        };
        for (at, event) in last_events {
            row.append_and_apply(at, event, violations);
        }
        row.record.outcome = Some(settlement.outcome);
        row.record.failure = settlement.failure;
        row.record.attempt_id = settlement.attempt_id;
        row.record.exit_code = settlement.exit_code;
        row.record.ended_at = Some(settlement.at);
        row.record.pid = None;
        row.sealed_input = row.sealed_input.take().filter(|_| settlement.keeps_sealed_input);
        Ok(true)
    }

    async fn sealed_input(&self, id: ExecutionId) -> Result<Option<Vec<u8>>, LedgerError> {
        self.inject_fault(LedgerCallKind::Read).await?;
        Ok(self.rows.lock().await.executions.get(&id).and_then(|row| row.sealed_input.clone()))
    }

    async fn execution(&self, id: ExecutionId) -> Result<Option<ExecutionRecord>, LedgerError> {
        self.inject_fault(LedgerCallKind::Read).await?;
        Ok(self.rows.lock().await.executions.get(&id).map(|row| row.record.clone()))
    }

    async fn executions(
        &self,
        filter: ExecutionFilter,
    ) -> Result<Vec<ExecutionRecord>, LedgerError> {
        self.inject_fault(LedgerCallKind::List).await?;
        let limit = if filter.limit == 0 { usize::MAX } else { filter.limit as usize };
        let rows = self.rows.lock().await;
        let owner_name = |record: &ExecutionRecord| {
            let is_owner = |token: &Token| token.principal == record.owner;
            rows.tokens
                .iter()
                .find(|token| is_owner(token))
                .map(|token| token.principal_name.clone())
        };
        let fits = |record: &&ExecutionRecord| {
            let is_own = filter.owner_name.is_none() || filter.owner_name == owner_name(record);
            is_own && filter.matches(record)
        };
        let newest_first = rows.executions.values().rev().map(|row| &row.record);
        Ok(newest_first.filter(fits).take(limit).cloned().collect())
    }

    async fn execution_page(
        &self,
        query: ExecutionPageQuery,
    ) -> Result<ExecutionPage, LedgerError> {
        self.inject_fault(LedgerCallKind::List).await?;
        let rows = self.rows.lock().await;
        let records = rows.executions.values().map(|row| &row.record);
        let mut records: Vec<_> = records.filter(|record| matches_query(&query, record)).collect();
        records.sort_by_key(|record| std::cmp::Reverse(sort_key(record)));
        let total = records.len() as u64;
        let after = query.after.map(|(at, id)| (at.timestamp_micros(), id));
        let page =
            records.into_iter().filter(|record| after.is_none_or(|after| sort_key(record) < after));
        Ok(ExecutionPage { records: page.take(query.limit as usize).cloned().collect(), total })
    }

    async fn events(&self, id: ExecutionId, after: u64) -> Result<Vec<Event>, LedgerError> {
        self.inject_fault(LedgerCallKind::Read).await?;
        let rows = self.rows.lock().await;
        let events = rows.executions.get(&id).map(|row| row.events.clone()).unwrap_or_default();
        Ok(events.into_iter().filter(|event| event.number > after).collect())
    }

    async fn text(&self, id: ExecutionId, range: TextRange) -> Result<String, LedgerError> {
        self.inject_fault(LedgerCallKind::Read).await?;
        let rows = self.rows.lock().await;
        Ok(rows.executions.get(&id).map(|row| row.text(range)).unwrap_or_default())
    }

    async fn spent_by_all_agents(
        &self,
        days: &[NaiveDate],
    ) -> Result<BTreeMap<(AgentId, NaiveDate), Charge>, LedgerError> {
        self.inject_fault(LedgerCallKind::Read).await?;
        let rows = self.rows.lock().await;
        let mut spent = BTreeMap::<_, Charge>::new();
        for row in rows.executions.values() {
            for event in &row.events {
                let EventKind::BudgetCharged { day, charge } = &event.data else { continue };
                if days.contains(day) {
                    let sum = spent.entry((row.record.agent.clone(), *day)).or_default();
                    *sum = sum.plus(*charge);
                }
            }
        }
        Ok(spent)
    }

    async fn spent_on_day(&self, agent: &AgentId, day: NaiveDate) -> Result<Charge, LedgerError> {
        self.inject_fault(LedgerCallKind::Read).await?;
        let rows = self.rows.lock().await;
        let agent_rows = rows.executions.values().filter(|row| row.record.agent == *agent);
        let charges =
            agent_rows.flat_map(|row| &row.events).filter_map(|event| match &event.data {
                EventKind::BudgetCharged { day: event_day, charge } if *event_day == day => {
                    Some(*charge)
                }
                _ => None,
            });
        Ok(charges.fold(Charge::default(), Charge::plus))
    }

    async fn replace_configured_tokens(
        &self,
        new_tokens: Vec<NewToken>,
        _: DateTime<Utc>,
    ) -> Result<(), LedgerError> {
        self.inject_fault(LedgerCallKind::ReplaceTokens).await?;
        let mut rows = self.rows.lock().await;
        let earlier_tokens = std::mem::take(&mut rows.tokens);
        let mut principals: BTreeMap<_, _> = earlier_tokens
            .into_iter()
            .map(|token| (token.principal_name, token.principal))
            .collect();
        for NewToken { name, hash, scope, expires_at } in new_tokens {
            let principal = *principals.entry(name.clone()).or_insert(PrincipalId(Uuid::now_v7()));
            rows.tokens.push(Token { principal, principal_name: name, hash, scope, expires_at });
        }
        Ok(())
    }

    async fn tokens(&self) -> Result<Vec<Token>, LedgerError> {
        self.inject_fault(LedgerCallKind::Read).await?;
        Ok(self.rows.lock().await.tokens.clone())
    }
}

/// Returns true if an event may follow the end.
fn may_follow_end(event: &EventKind) -> bool {
    matches!(event, EventKind::StateChanged(change) if [change.from, change.to].contains(&ExecutionState::Cleanup))
}
