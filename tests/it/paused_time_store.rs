//! The store in virtual time: while it works, no time passes.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};

use algonius_actors::model::access::principal::{NewToken, Token};
use algonius_actors::model::agent::budget::Charge;
use algonius_actors::model::execution::event::{Event, TextChunk, TextRange};
use algonius_actors::model::execution::record::{
    ExecutionFilter, ExecutionPage, ExecutionPageQuery, ExecutionRecord,
};
use algonius_actors::model::execution::{AttemptId, Fence};
use algonius_actors::model::id::{AgentId, ExecutionId, PrincipalId, ScheduleId};
use algonius_actors::model::schedule::Schedule;
use algonius_actors::model::schedule::occurrence::{Occurrence, OccurrenceEnd, OccurrenceQuery};
use algonius_actors::ports::ledger::{
    AcceptCommand, AcceptResult, AnswerCommand, ClaimCommand, ClaimResult, Ledger, LedgerError,
    Settlement, WriteBatch,
};
use algonius_actors::ports::schedule_store::{
    OccurrenceStatusChange, ScheduleEvaluation, ScheduleStore,
};
use algonius_store::Store;
use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, Utc};

/// A store whose work takes no virtual time.
#[derive(Clone)]
pub(crate) struct PausedTimeStore(pub(crate) Arc<Store>);

/// Does a work while virtual time stands still, which it does as long as a thread is blocked.
pub(crate) async fn run_with_paused_time<T>(work: impl Future<Output = T>) -> T {
    let (sender, receiver) = mpsc::channel::<()>();
    let blocking_task = tokio::task::spawn_blocking(move || _ = receiver.recv());
    let output = work.await;
    drop(sender);
    blocking_task.await.unwrap();
    output
}

#[async_trait]
impl Ledger for PausedTimeStore {
    async fn accept(&self, command: AcceptCommand) -> Result<AcceptResult, LedgerError> {
        run_with_paused_time(Ledger::accept(&*self.0, command)).await
    }

    async fn record_answer(&self, command: AnswerCommand) -> Result<bool, LedgerError> {
        run_with_paused_time(Ledger::record_answer(&*self.0, command)).await
    }

    async fn sealed_input(&self, id: ExecutionId) -> Result<Option<Vec<u8>>, LedgerError> {
        self.0.sealed_input(id).await
    }

    async fn find_by_key(
        &self,
        owner: PrincipalId,
        agent: &AgentId,
        key: [u8; 32],
    ) -> Result<Option<(ExecutionId, [u8; 32])>, LedgerError> {
        run_with_paused_time(Ledger::find_by_key(&*self.0, owner, agent, key)).await
    }

    async fn claim(&self, command: ClaimCommand) -> Result<ClaimResult, LedgerError> {
        run_with_paused_time(Ledger::claim(&*self.0, command)).await
    }

    async fn append_batch(
        &self,
        id: ExecutionId,
        fence: Fence,
        batch: WriteBatch,
    ) -> Result<bool, LedgerError> {
        run_with_paused_time(Ledger::append_batch(&*self.0, id, fence, batch)).await
    }

    async fn append_chunk(&self, id: ExecutionId, chunk: TextChunk) -> Result<(), LedgerError> {
        run_with_paused_time(Ledger::append_chunk(&*self.0, id, chunk)).await
    }

    async fn delete_output(
        &self,
        id: ExecutionId,
        attempt_id: AttemptId,
    ) -> Result<(), LedgerError> {
        run_with_paused_time(Ledger::delete_output(&*self.0, id, attempt_id)).await
    }

    async fn settle(&self, settlement: Settlement) -> Result<bool, LedgerError> {
        run_with_paused_time(Ledger::settle(&*self.0, settlement)).await
    }

    async fn execution(&self, id: ExecutionId) -> Result<Option<ExecutionRecord>, LedgerError> {
        run_with_paused_time(Ledger::execution(&*self.0, id)).await
    }

    async fn executions(
        &self,
        filter: ExecutionFilter,
    ) -> Result<Vec<ExecutionRecord>, LedgerError> {
        run_with_paused_time(Ledger::executions(&*self.0, filter)).await
    }

    async fn execution_page(
        &self,
        query: ExecutionPageQuery,
    ) -> Result<ExecutionPage, LedgerError> {
        run_with_paused_time(Ledger::execution_page(&*self.0, query)).await
    }

    async fn events(&self, id: ExecutionId, after: u64) -> Result<Vec<Event>, LedgerError> {
        run_with_paused_time(Ledger::events(&*self.0, id, after)).await
    }

    async fn text(&self, id: ExecutionId, range: TextRange) -> Result<String, LedgerError> {
        run_with_paused_time(Ledger::text(&*self.0, id, range)).await
    }

    async fn spent_on_day(&self, agent: &AgentId, day: NaiveDate) -> Result<Charge, LedgerError> {
        run_with_paused_time(Ledger::spent_on_day(&*self.0, agent, day)).await
    }

    async fn spent_by_all_agents(
        &self,
        days: &[NaiveDate],
    ) -> Result<BTreeMap<(AgentId, NaiveDate), Charge>, LedgerError> {
        run_with_paused_time(Ledger::spent_by_all_agents(&*self.0, days)).await
    }

    async fn replace_configured_tokens(
        &self,
        tokens: Vec<NewToken>,
        at: DateTime<Utc>,
    ) -> Result<(), LedgerError> {
        run_with_paused_time(Ledger::replace_configured_tokens(&*self.0, tokens, at)).await
    }

    async fn tokens(&self) -> Result<Vec<Token>, LedgerError> {
        run_with_paused_time(Ledger::tokens(&*self.0)).await
    }
}

#[async_trait]
impl ScheduleStore for PausedTimeStore {
    async fn schedules(&self) -> Result<Vec<Schedule>, LedgerError> {
        run_with_paused_time(ScheduleStore::schedules(&*self.0)).await
    }

    async fn put_schedules(&self, schedules: Vec<Schedule>) -> Result<(), LedgerError> {
        run_with_paused_time(ScheduleStore::put_schedules(&*self.0, schedules)).await
    }

    async fn remove_schedules(&self, ids: Vec<ScheduleId>) -> Result<(), LedgerError> {
        run_with_paused_time(ScheduleStore::remove_schedules(&*self.0, ids)).await
    }

    async fn record_evaluations(
        &self,
        evaluations: Vec<ScheduleEvaluation>,
    ) -> Result<Vec<Vec<Occurrence>>, LedgerError> {
        run_with_paused_time(ScheduleStore::record_evaluations(&*self.0, evaluations)).await
    }

    async fn record_status_changes(
        &self,
        status_changes: Vec<OccurrenceStatusChange>,
    ) -> Result<(), LedgerError> {
        run_with_paused_time(ScheduleStore::record_status_changes(&*self.0, status_changes)).await
    }

    async fn record_end(
        &self,
        schedule: &ScheduleId,
        planned: DateTime<Utc>,
        ending: OccurrenceEnd,
    ) -> Result<(), LedgerError> {
        run_with_paused_time(ScheduleStore::record_end(&*self.0, schedule, planned, ending)).await
    }

    async fn open_occurrences(&self) -> Result<Vec<Occurrence>, LedgerError> {
        run_with_paused_time(ScheduleStore::open_occurrences(&*self.0)).await
    }

    async fn occurrences(&self, query: OccurrenceQuery) -> Result<Vec<Occurrence>, LedgerError> {
        run_with_paused_time(ScheduleStore::occurrences(&*self.0, query)).await
    }

    async fn occurrences_since(
        &self,
        schedule: &ScheduleId,
        since: DateTime<Utc>,
    ) -> Result<Vec<Occurrence>, LedgerError> {
        run_with_paused_time(ScheduleStore::occurrences_since(&*self.0, schedule, since)).await
    }

    async fn remove_occurrences(
        &self,
        before: DateTime<Utc>,
        limit: u32,
    ) -> Result<u64, LedgerError> {
        run_with_paused_time(ScheduleStore::remove_occurrences(&*self.0, before, limit)).await
    }
}
