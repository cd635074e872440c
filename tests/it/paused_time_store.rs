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
use algonius_actors::model::schedule::occurrence::{Occurrence, OccurrenceEnding, OccurrenceQuery};
use algonius_actors::ports::ledger::{
    AcceptCommand, AcceptResult, AnswerCommand, ClaimCommand, ClaimResult, Ledger, LedgerError,
    Settlement, WriteBatch,
};
use algonius_actors::ports::schedule_store::{ScheduleAdvance, ScheduleStore, SettledOccurrence};
use algonius_store::Store;
use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, Utc};

/// A store whose work takes no virtual time.
#[derive(Clone)]
pub(crate) struct PausedTimeStore(pub(crate) Arc<Store>);

/// Does a work while virtual time stands still, which it does as long as a thread is blocked.
pub(crate) async fn with_paused_time<T>(work: impl Future<Output = T>) -> T {
    let (sender, receiver) = mpsc::channel::<()>();
    let blocked = tokio::task::spawn_blocking(move || _ = receiver.recv());
    let answer = work.await;
    drop(sender);
    blocked.await.unwrap();
    answer
}

#[async_trait]
impl Ledger for PausedTimeStore {
    async fn accept(&self, accept: AcceptCommand) -> Result<AcceptResult, LedgerError> {
        with_paused_time(Ledger::accept(&*self.0, accept)).await
    }

    async fn record_answer(&self, resume: AnswerCommand) -> Result<bool, LedgerError> {
        with_paused_time(Ledger::record_answer(&*self.0, resume)).await
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
        with_paused_time(Ledger::find_by_key(&*self.0, owner, agent, key)).await
    }

    async fn claim(&self, command: ClaimCommand) -> Result<ClaimResult, LedgerError> {
        with_paused_time(Ledger::claim(&*self.0, command)).await
    }

    async fn write(
        &self,
        id: ExecutionId,
        fence: Fence,
        batch: WriteBatch,
    ) -> Result<bool, LedgerError> {
        with_paused_time(Ledger::write(&*self.0, id, fence, batch)).await
    }

    async fn append_chunk(&self, id: ExecutionId, chunk: TextChunk) -> Result<(), LedgerError> {
        with_paused_time(Ledger::append_chunk(&*self.0, id, chunk)).await
    }

    async fn delete_output(
        &self,
        id: ExecutionId,
        attempt_id: AttemptId,
    ) -> Result<(), LedgerError> {
        with_paused_time(Ledger::delete_output(&*self.0, id, attempt_id)).await
    }

    async fn settle(&self, settlement: Settlement) -> Result<bool, LedgerError> {
        with_paused_time(Ledger::settle(&*self.0, settlement)).await
    }

    async fn execution(&self, id: ExecutionId) -> Result<Option<ExecutionRecord>, LedgerError> {
        with_paused_time(Ledger::execution(&*self.0, id)).await
    }

    async fn executions(
        &self,
        filter: ExecutionFilter,
    ) -> Result<Vec<ExecutionRecord>, LedgerError> {
        with_paused_time(Ledger::executions(&*self.0, filter)).await
    }

    async fn page(&self, query: ExecutionPageQuery) -> Result<ExecutionPage, LedgerError> {
        with_paused_time(Ledger::page(&*self.0, query)).await
    }

    async fn events(&self, id: ExecutionId, after: u64) -> Result<Vec<Event>, LedgerError> {
        with_paused_time(Ledger::events(&*self.0, id, after)).await
    }

    async fn text(&self, id: ExecutionId, span: TextRange) -> Result<String, LedgerError> {
        with_paused_time(Ledger::text(&*self.0, id, span)).await
    }

    async fn spent(&self, agent: &AgentId, day: NaiveDate) -> Result<Charge, LedgerError> {
        with_paused_time(Ledger::spent(&*self.0, agent, day)).await
    }

    async fn spent_by_all(
        &self,
        days: &[NaiveDate],
    ) -> Result<BTreeMap<(AgentId, NaiveDate), Charge>, LedgerError> {
        with_paused_time(Ledger::spent_by_all(&*self.0, days)).await
    }

    async fn replace_configured_tokens(
        &self,
        tokens: Vec<NewToken>,
        at: DateTime<Utc>,
    ) -> Result<(), LedgerError> {
        with_paused_time(Ledger::replace_configured_tokens(&*self.0, tokens, at)).await
    }

    async fn tokens(&self) -> Result<Vec<Token>, LedgerError> {
        with_paused_time(Ledger::tokens(&*self.0)).await
    }
}

#[async_trait]
impl ScheduleStore for PausedTimeStore {
    async fn schedules(&self) -> Result<Vec<Schedule>, LedgerError> {
        with_paused_time(ScheduleStore::schedules(&*self.0)).await
    }

    async fn put(&self, schedules: Vec<Schedule>) -> Result<(), LedgerError> {
        with_paused_time(ScheduleStore::put(&*self.0, schedules)).await
    }

    async fn remove(&self, ids: Vec<ScheduleId>) -> Result<(), LedgerError> {
        with_paused_time(ScheduleStore::remove(&*self.0, ids)).await
    }

    async fn advance(
        &self,
        advances: Vec<ScheduleAdvance>,
    ) -> Result<Vec<Vec<Occurrence>>, LedgerError> {
        with_paused_time(ScheduleStore::advance(&*self.0, advances)).await
    }

    async fn settle(&self, settled: Vec<SettledOccurrence>) -> Result<(), LedgerError> {
        with_paused_time(ScheduleStore::settle(&*self.0, settled)).await
    }

    async fn record_end(
        &self,
        schedule: &ScheduleId,
        planned: DateTime<Utc>,
        ending: OccurrenceEnding,
    ) -> Result<(), LedgerError> {
        with_paused_time(ScheduleStore::record_end(&*self.0, schedule, planned, ending)).await
    }

    async fn open_occurrences(&self) -> Result<Vec<Occurrence>, LedgerError> {
        with_paused_time(ScheduleStore::open_occurrences(&*self.0)).await
    }

    async fn occurrences(&self, query: OccurrenceQuery) -> Result<Vec<Occurrence>, LedgerError> {
        with_paused_time(ScheduleStore::occurrences(&*self.0, query)).await
    }

    async fn occurrences_since(
        &self,
        schedule: &ScheduleId,
        since: DateTime<Utc>,
    ) -> Result<Vec<Occurrence>, LedgerError> {
        with_paused_time(ScheduleStore::occurrences_since(&*self.0, schedule, since)).await
    }

    async fn remove_occurrences(
        &self,
        before: DateTime<Utc>,
        limit: u32,
    ) -> Result<u64, LedgerError> {
        with_paused_time(ScheduleStore::remove_occurrences(&*self.0, before, limit)).await
    }
}
