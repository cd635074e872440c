//! Reads of executions for callers: their records, events, texts, queue positions and amounts.

mod run_tree;

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use tokio::sync::watch;

use crate::gateway::GatewayMsg;
use crate::gateway::handle::GatewayHandle;
use crate::model::access::principal::{Caller, Right};
use crate::model::agent::AgentSpec;
use crate::model::agent::budget::Charge;
use crate::model::agent::queue::Queued;
use crate::model::code::Code;
use crate::model::execution::ExecutionState;
use crate::model::execution::event::{Event, TextRange};
use crate::model::execution::progress::Progress;
use crate::model::execution::record::{
    ExecutionFilter, ExecutionPage, ExecutionPageQuery, ExecutionRecord,
};
use crate::model::failure::Failure;
use crate::model::host::storage_stats::StorageStats;
use crate::model::id::{AgentId, ExecutionId, PrincipalId};
use crate::model::observation::account_status::AccountStatus;
use crate::ports::history::TextSlice;
use crate::ports::ledger::LedgerError;
use crate::services::Services;
use crate::services::sealed_inputs::unseal_input;

pub use self::run_tree::{RunTree, TreeHop};

/// Handle that reads executions, and changes none. Clones are cheap.
#[derive(Clone)]
pub struct ExecutionReader {
    pub(crate) gateway_handle: GatewayHandle,
    pub(crate) services: Services,
}

impl ExecutionReader {
    /// Returns one execution, if the caller may see it: its own, or any for an administrator.
    ///
    /// # Errors
    /// Returns `execution-unknown` both if the execution does not exist and if it belongs to another caller.
    pub async fn execution(
        &self,
        caller: &Caller,
        id: ExecutionId,
    ) -> Result<ExecutionRecord, Failure> {
        let record = map_error(self.services.ledger.execution(id).await)?;
        record
            .filter(|record| caller.may_see(record.owner, &record.agent))
            .ok_or_else(|| execution_unknown_failure(id))
    }

    /// Returns the executions of the caller, or of all callers for an administrator; newest first.
    ///
    /// # Errors
    /// Returns an error if the executions could not be read.
    pub async fn executions(
        &self,
        caller: &Caller,
        mut filter: ExecutionFilter,
    ) -> Result<Vec<ExecutionRecord>, Failure> {
        if !caller.scope.allows(Right::Read, None) {
            return Ok(Vec::new());
        }
        if !caller.scope.allows(Right::Admin, None) {
            filter.owner = Some(caller.principal);
        }
        filter.agents.clone_from(&caller.scope.agents); // Otherwise filtered rows would end a page early.
        map_error(self.services.ledger.executions(filter).await)
    }

    /// Returns a page of an agent's executions: of the caller, or of all callers for an administrator. The page is
    /// empty for a caller that may not see the agent's executions.
    ///
    /// # Errors
    /// Returns an error if the executions could not be read.
    pub async fn execution_page(
        &self,
        caller: &Caller,
        mut query: ExecutionPageQuery,
    ) -> Result<ExecutionPage, Failure> {
        let may = |right| caller.scope.allows(right, Some(&query.agent));
        match (may(Right::Admin), may(Right::Read)) {
            (true, _) => {}
            (false, true) => query.owner = Some(caller.principal),
            (false, false) => return Ok(ExecutionPage::default()),
        }
        map_error(self.services.ledger.execution_page(query).await)
    }

    /// Returns the events of an execution after the given number, in order.
    ///
    /// # Errors
    /// Returns an error if the events could not be read.
    pub async fn events(
        &self,
        record: &ExecutionRecord,
        after: u64,
    ) -> Result<Vec<Event>, Failure> {
        map_error(self.services.ledger.events(record.id, after).await)
    }

    /// Returns redacted text of an execution.
    ///
    /// # Errors
    /// Returns an error if the text could not be read.
    pub async fn text(
        &self,
        record: &ExecutionRecord,
        range: TextRange,
    ) -> Result<String, Failure> {
        map_error(self.services.ledger.text(record.id, range).await)
    }

    /// Returns the progress of an execution, while an actor holds it.
    pub(crate) async fn watch_progress(
        &self,
        agent: &AgentId,
        id: ExecutionId,
    ) -> Option<watch::Receiver<Progress>> {
        let agent = agent.clone();
        self.gateway_handle
            .call_or_none(|reply| GatewayMsg::WatchProgress(agent, id, reply))
            .await
            .flatten()
    }

    /// Returns the present queue position and reason of an execution; `None` if it does not wait, or if no actor holds
    /// it.
    pub async fn queue_position(&self, record: &ExecutionRecord) -> Option<Queued> {
        let is_open = record.outcome.is_none() && !record.awaits_answer();
        let may_wait = matches!(
            record.state,
            ExecutionState::Idle | ExecutionState::Failed | ExecutionState::Waiting
        );
        if !(is_open && may_wait) {
            return None;
        }
        self.watch_progress(&record.agent, record.id)
            .await
            .and_then(|progress| progress.borrow().queue_position)
    }

    /// Returns the accounts of these agents, with their states.
    #[must_use]
    pub fn account_statuses<'s>(
        &self,
        specs: impl IntoIterator<Item = &'s AgentSpec>,
    ) -> Vec<AccountStatus> {
        self.services.breakers.account_statuses(&self.services.keyed_hasher, specs, self.now())
    }

    /// Returns the present record.
    ///
    /// # Errors
    /// Returns an error if the record could not be read, or was removed.
    pub async fn reread(&self, record: &ExecutionRecord) -> Result<ExecutionRecord, Failure> {
        let present = map_error(self.services.ledger.execution(record.id).await)?;
        present.ok_or_else(|| execution_unknown_failure(record.id))
    }

    /// Returns the wall time of the supervision tree.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        self.services.clock.now()
    }

    /// Returns at most `limit` events of an execution after the given number, in order.
    ///
    /// # Errors
    /// Returns an error if the events could not be read.
    pub async fn next_events(
        &self,
        record: &ExecutionRecord,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Event>, Failure> {
        map_error(self.services.stores.history.next_events(record.id, after, limit).await)
    }

    /// Returns every text of an execution, from its first byte to its last byte so far.
    ///
    /// # Errors
    /// Returns an error if the texts could not be read.
    pub async fn text_ranges(&self, record: &ExecutionRecord) -> Result<Vec<TextRange>, Failure> {
        map_error(self.services.stores.history.text_ranges(record.id).await)
    }

    /// Returns the whole characters within a range of a text.
    ///
    /// # Errors
    /// Returns an error if the text could not be read.
    pub async fn text_slice(
        &self,
        record: &ExecutionRecord,
        range: TextRange,
    ) -> Result<TextSlice, Failure> {
        map_error(self.services.stores.history.text_slice(record.id, range).await)
    }

    /// Returns the amounts that agents have used on the given days; an agent that has used nothing is omitted.
    ///
    /// # Errors
    /// Returns an error if the amounts could not be read.
    pub async fn daily_usage(
        &self,
        days: &[NaiveDate],
    ) -> Result<BTreeMap<(AgentId, NaiveDate), Charge>, Failure> {
        map_error(self.services.ledger.spent_by_all_agents(days).await)
    }

    /// Returns the names of all principals.
    ///
    /// # Errors
    /// Returns an error if the names could not be read.
    pub async fn principal_names(&self) -> Result<BTreeMap<PrincipalId, String>, Failure> {
        map_error(self.services.stores.history.principal_names().await)
    }

    /// Returns the storage statistics.
    ///
    /// # Errors
    /// Returns an error if the statistics could not be read.
    pub async fn storage_stats(&self) -> Result<StorageStats, Failure> {
        map_error(self.services.stores.history.storage_stats().await)
    }

    /// Returns true if [`RequestHandle::retry`](crate::api::RequestHandle::retry) can restore the request of an
    /// execution.
    ///
    /// # Errors
    /// Returns an error if the input could not be read.
    pub async fn can_retry(&self, record: &ExecutionRecord) -> Result<bool, Failure> {
        Ok(record.attempt_id.turn == 1
            && (record.stores_raw_input
                || map_error(unseal_input(&self.services, record).await)?.is_ok()))
    }
}

fn map_error<T>(result: Result<T, LedgerError>) -> Result<T, Failure> {
    result.map_err(|error| ledger_read_failure(&error))
}

fn execution_unknown_failure(id: ExecutionId) -> Failure {
    Failure::new(Code::ExecutionUnknown, format!("there is no execution `{id}`"))
}

/// Logs a failed read of the ledger and returns it as a failure for the caller.
pub(crate) fn ledger_read_failure(error: &LedgerError) -> Failure {
    tracing::error!(%error, "read failed");
    Failure::new(Code::LedgerUnavailable, "the ledger could not be read")
}
